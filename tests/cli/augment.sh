# Augmentation by chance: the same images whatever the number of workers and devices, others with another seed, and
# recorded in run.json and the checkpoint.
. "$SOURCE/tests/cli/harness"
flags="--model lenet5 --input 3x16x16 --crop 16x16 --resize 18 --pad 2 --flip --batch-size 8 --epochs 1 --data folder:set"
chance="--auto-augment ta_wide --color-jitter 0.4,0.4,0.4,0.1 --random-erase 0.3"

make_set

weights_of() {
    ok train $flags --shards 2 "$@"
    hash_of_out
}
want=$(weights_of $chance --workers 0 --output-dir run)
test "$(weights_of $chance --workers 3)" = "$want" || die "three workers give other images"
test "$(weights_of $chance --devices cpu:0-1 --threads-per-device 1 --strategy ddp)" = \
    "$(weights_of $chance --threads-per-device 1)" || die "two devices give other images"
test "$(weights_of $chance --seed 1)" != "$want" || die "another seed gives the same images"
test "$(weights_of)" != "$want" || die "the flags change nothing"
for other in "--auto-augment ra --color-jitter 0.4,0.4,0.4,0.1 --random-erase 0.3" \
    "--auto-augment ta_wide --random-erase 0.3"; do
    test "$(weights_of $other)" != "$want" || die "$other is the same as $chance"
done
grep -q '"auto-augment": "ta_wide"' run/run.json || die "run.json lacks it"
ok train --resume run --epochs 3 --auto-augment ra
grep -q 'otherwise than it began: .* ra=9 .*was .* ta_wide' err || die "no warning of another augmentation: $(cat err)"
fails 2 "images in colour" train --data digits --model lenet5 --auto-augment ra
fails 2 "colour jitter 0.6" train $flags --color-jitter 0.1,0.1,0.1,0.6

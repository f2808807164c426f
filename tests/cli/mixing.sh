# MixUp and CutMix: pairs are of one shard and the draw is the update's, so devices and strategies change no bit; what
# was trained so is evaluated as ever.
. "$SOURCE/tests/cli/harness"

# bits ARGUMENTS…: the hash after two epochs with S = 4.
bits() {
    ok train --data digits --model lenet5 --shards 4 --threads-per-device 1 --batch-size 64 --epochs 2 --lr 0.05 \
        --workers 1 --print-freq 1000 "$@"
    hash_of_out
}

plain=$(bits --devices cpu:0) || exit 1
mixup=$(bits --devices cpu:0 --mixup-alpha 0.2) || exit 1
cutmix=$(bits --devices cpu:0 --cutmix-alpha 1) || exit 1
both=$(bits --devices cpu:0 --mixup-alpha 0.2 --cutmix-alpha 1 --label-smoothing 0.1) || exit 1
[ "$(printf '%s\n' "$plain" "$mixup" "$cutmix" "$both" | sort -u | wc -l)" -eq 4 ] ||
    die "plain $plain, MixUp $mixup, CutMix $cutmix, both $both: some are alike"
for flags in "--devices cpu:0-2" "--devices cpu:0-1 --strategy pipeline" "--devices cpu:0-1 --strategy dp"; do
    same "$(bits $flags --mixup-alpha 0.2 --cutmix-alpha 1 --label-smoothing 0.1)" "$both" "$flags"
done

ok train --data digits --model lenet5 --batch-size 64 --epochs 1 --mixup-alpha 0.2 --output-dir mixed
last=$(sed -n 's/^done: \(top-1 [0-9.]* %\) .*/\1/p' out)
[ -n "$last" ] || die "train does not say its top-1"
ok eval --data digits --model lenet5 --weights mixed/last/model.safetensors
has out "$last"

fails 2 "mixup-alpha" train --data digits --model lenet5 --mixup-alpha -1

# --sync-bn: batch-norm normalises over all shards. The same bits on any devices; what goes with it and what does not.
. "$SOURCE/tests/cli/harness"

# run NAME ARGUMENTS…: two epochs with random crops and a smaller last batch, of fewer images than shards.
run() {
    name=$1
    shift
    ok train --data synthetic:3x8x8,classes=10,images=261 --model resnet20 --shards 8 --threads-per-device 1 \
        --batch-size 64 --epochs 2 --pad 1 --seed 7 --workers 1 --print-freq 1 --output-dir "$name" "$@"
    sed 's/"\(images_per_s\|train_s\|val_s\)":[^,}]*,*//g' "$name/metrics.jsonl" >"$name/metrics"
}

alike() {
    want_of=$1 name=$2
    shift 2
    run "$name" "$@"
    for file in last/model.safetensors last/optimizer.safetensors last/state.json metrics; do
        cmp "$want_of/$file" "$name/$file" || die "$file of $name is not that of $want_of"
    done
    rm -r "$name"
}

run single --sync-bn --strategy single --devices cpu:0
has single/run.json '"sync-bn": true'
alike single again --sync-bn --strategy single --devices cpu:0
for n in 2 4; do
    alike single ddp-$n --sync-bn --strategy ddp --devices cpu:0-$((n - 1))
    alike single dp-$n --sync-bn --strategy dp --devices cpu:0-$((n - 1))
done
alike single buckets --sync-bn --devices cpu:0-1 --bucket-mb 0.05 --first-bucket-mb 0.01
run apart --strategy single --devices cpu:0
! cmp -s single/last/model.safetensors apart/last/model.safetensors || die "--sync-bn does nothing"
run three --sync-bn --accumulate 3 --devices cpu:0
alike three three-ddp --sync-bn --accumulate 3 --devices cpu:0-2

# a run goes on with it, and is told when it does not
ok train --resume single --epochs 3
! grep -q warning err || { cat err; die "a warning, though nothing changed"; }
ok train --resume single --epochs 4 --no-sync-bn --strategy ddp --devices cpu:0-1
has err "this run goes on otherwise than it began: batch-norm --no-sync-bn (was --sync-bn)"

# a network without batch-norm runs as ever
ok explain --data digits --model lenet5 --devices cpu:0-1 --sync-bn --pass program
! grep -q exchange out || die "lenet5 exchanges rows"

ok explain --data digits --model resnet20 --devices cpu:0-1 --sync-bn
has out "rows that shards exchange for batch-norm"
ok explain --data digits --model resnet20 --devices cpu:0-1 --sync-bn --pass program
has out "exchange F0.1"
has out "exchange B0.0"
ok explain --data digits --model resnet20 --devices cpu:0-1 --sync-bn --pass autodiff
has out "batch_norm_backward_shift"

train="train $quick --sync-bn"
fails 2 "they pass through its stages one after another, and each would wait for the last; take --strategy ddp" $train \
    --strategy pipeline --devices cpu:0-1
fails 2 "take --strategy ddp, or leave --sync-bn out" $train --strategy mp --devices cpu:0-1
fails 2 "strategy hybrid cannot normalise over all shards" $train --strategy hybrid --mesh data=2,pipe=2 \
    --devices cpu:0-3

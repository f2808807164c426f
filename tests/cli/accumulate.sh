# --accumulate K: K batches make an update. The same bits under every strategy, the last update of an epoch with fewer
# batches and a smaller one; what a run says of it, and how it goes on.
. "$SOURCE/tests/cli/harness"

# run NAME ARGUMENTS…: 1437 images are 22 batches of 64, and 29: 7 updates of 3 batches, and one of two.
run() {
    name=$1
    shift
    ok train --data digits --model resnet20 --shards 4 --threads-per-device 1 --batch-size 64 --epochs 2 --pad 1 \
        --seed 7 --workers 1 --print-freq 1 --lr-scheduler cosine --output-dir "$name" "$@"
    sed 's/"\(images_per_s\|train_s\|val_s\)":[^,}]*,*//g' "$name/metrics.jsonl" >"$name/metrics"
}

alike() {
    want=$1 name=$2
    shift 2
    run "$name" "$@"
    for file in last/model.safetensors last/optimizer.safetensors last/state.json metrics; do
        cmp "$want/$file" "$name/$file" || die "$file of $name is not that of $want"
    done
    rm -r "$name"
}

run single --accumulate 3 --devices cpu:0
same "$(grep -c '"event":"step"' single/metrics)" 16 "updates of two epochs"
same "$(grep -c '"images":192,' single/metrics)" 14 "updates of three batches"
same "$(grep -c '"images":93,' single/metrics)" 2 "updates of what is left"
has single/metrics '"update":15,'
has single/last/state.json '"updates": 16,'
has single/metrics '"train_images":1437,'
has single/run.json '"accumulate": 3'
# the schedule counts updates: the last of 16 has half a cosine but a sixteenth behind it
has single/metrics '"update":15,"lr":0.000960'

alike single ddp --accumulate 3 --devices cpu:0-1
alike single dp --accumulate 3 --devices cpu:0-2 --strategy dp
alike single mp --accumulate 3 --devices cpu:0-1 --strategy mp
alike single 1f1b --accumulate 3 --devices cpu:0-1 --strategy pipeline
alike single gpipe --accumulate 3 --devices cpu:0-2 --strategy pipeline --schedule gpipe
alike single hybrid --accumulate 3 --devices cpu:0-3 --strategy hybrid --mesh data=2,pipe=2

# an update of each batch is what it was
run each --devices cpu:0-1
alike each one --accumulate 1 --devices cpu:0
! cmp -s each/last/model.safetensors single/last/model.safetensors || die "--accumulate does nothing"

# stopped between two updates of an epoch, and on again: it skips the batches of whole updates
long="--data synthetic:1x8x8,classes=10,images=4000 --model lenet5 --devices cpu:0 --threads-per-device 1
    --batch-size 8 --accumulate 3 --epochs 1 --print-freq 1"
ok train $long
whole=$(hash_of_out) || exit 1
interrupted "epoch 1/1, step 3/167" train $long --output-dir stopped
fails 2 "with --accumulate 2 (was 3)" train --resume stopped --accumulate 2
ok train --resume stopped
same "$(hash_of_out)" "$whole" "interrupted and resumed"

ok explain --data digits --model resnet20 --devices cpu:0-1 --accumulate 4
has out "up to 4 batches of up to 32 images make an update"
has out "gradients of an update's earlier batches"
ok explain --data digits --model resnet20 --devices cpu:0-1 --accumulate 4 --pass program
has out "schedule accumulate"
has out "accumulate sum 0 bucket 0"
fails 2 "--accumulate" train $quick --accumulate 0

# Whole models on pretend GPUs, from the command line: the weights of one GPU, whatever the strategy and the order.
. "$SOURCE/tests/cuda/harness"
[ "$SANITIZE" != thread ] || skip "many minutes with ThreadSanitizer, which sees the same code in cuda.strategies"

lenet="--data $matrix_data --model lenet5 --batch-size $(matrix_batch 250)"
resnet="--data synthetic:3x12x12,classes=10,images=64 --model resnet20 --batch-size 32"

for model in "$lenet" "$resnet"; do
    train="train $model --shards 8 --lr 0.05 --epochs 1 --workers 0 --print-freq 1000"
    unset FAKECUDA_SEED
    ok $train --devices cuda:0
    want=$(hash_of_out)
    for seed in 1 2; do
        [ -z "$SANITIZE" ] || [ $seed -eq 1 ] || continue # slow
        export FAKECUDA_SEED=$seed
        for how in "single --devices cuda:5" "ddp --devices cuda:0-7" "ddp --devices cuda:0/0-1,cuda:1/0-1" \
            "dp --devices cuda:0-3" "mp --devices cuda:0-1" "pipeline --schedule gpipe --devices cuda:0-3" \
            "pipeline --schedule 1f1b --devices cuda:0/0-3" "hybrid --mesh data=2,pipe=2 --devices cuda:0-3"; do
            ok $train --strategy $how
            same "$(hash_of_out)" "$want" "the weights of $how, order $seed"
        done
    done
    ok $train --shards 4 --devices cuda:0
    [ "$(hash_of_out)" != "$want" ] || die "the comparison says nothing"
done

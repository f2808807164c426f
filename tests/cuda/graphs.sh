# CUDA graphs: what comes again is launched as one, and changes no bit: not with a rate that changes at every update, not
# with evaluations between, and not when training goes on from a checkpoint. Where they fail it goes on without.
. "$SOURCE/tests/cuda/harness"

common="--data $matrix_data --model lenet5 --batch-size $(matrix_batch 256) --shards 4 --workers 0 --lr 0.05"
cycle="$common --epochs 2 --lr-scheduler cosineannealinglr --lr-warmup-epochs 1"

# The same with graphs, in another order, and without, where none is launched. The bits: $bits.
compare() {
    FAKECUDA_FAIL="op=cudaGraphLaunch" ok train "$@" --no-graphs
    bits=$(hash_of_out)
    FAKECUDA_SEED=3 ok train "$@"
    same "$(hash_of_out)" "$bits" "with graphs: $*"
    ! grep -q graphs err || { cat err; die "graphs failed: $*"; }
}

# shellcheck disable=SC2086  # words
{
    compare $cycle --devices cuda:0 --opt adamw --accumulate 2 --clip-grad-norm 0.5
    compare $cycle --devices cuda:0-1 --strategy pipeline
    compare $cycle --devices cuda:0-1 --sync-bn --amp fp16
    compare $cycle --devices cuda:0
    for graphs in --graphs --no-graphs; do
        ok train $cycle --devices cuda:0 --output-dir at$graphs --epochs 1 $graphs
        ok train --resume at$graphs --epochs 2 $graphs
        hash_of_out >hash$graphs
    done
    cmp hash--graphs hash--no-graphs || die "resumed, the bits are others"

    # a bench measures what training does
    for graphs in --graphs --no-graphs; do
        ok bench step --model lenet5 --batch-size 8 --shards 2 --steps 1 --devices cuda:0 $graphs
        cp out bench$graphs
    done
    grep -q "^  graph  " bench--graphs && ! grep -q "^  conv2d  " bench--graphs || { cat bench--graphs; die "bench"; }
    grep -q "^  conv2d  " bench--no-graphs && ! grep -q "^  graph  " bench--no-graphs ||
        { cat bench--no-graphs; die "bench without graphs"; }

    # they are launched indeed, and often: of 12 batches of four shards, and their updates
    FAKECUDA_FAIL="op=cudaGraphLaunch,n=40" fails 1 "cudaGraphLaunch fails" train $cycle --devices cuda:0
    for call in cudaStreamBeginCapture cudaStreamEndCapture cudaGraphInstantiate; do
        FAKECUDA_FAIL="op=$call,n=2" ok train $cycle --devices cuda:0
        same "$(hash_of_out)" "$bits" "with a failing $call"
        [ "$(grep -c "no CUDA graphs, kernels are launched one by one: cuda:0: .*$call" err)" -eq 1 ] ||
            { cat err; die "$call: not said once"; }
    done
}

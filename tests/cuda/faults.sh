# A pretend GPU that fails or stands still ends the run in time, with the right code and a line that says which, and at what.
. "$SOURCE/tests/cuda/harness"

train="train --data $matrix_data --model lenet5 --shards 4 --batch-size $(matrix_batch 250) --lr 0.05 --epochs 1 --workers 0
    --print-freq 1000"

# stops CODE TEXT VARIABLE FAULT ARGUMENTS…: with this fault the run ends with CODE, says TEXT, and takes no longer than the
# timeout and what it takes to train so far.
stops() {
    code=$1 text=$2 variable=$3 fault=$4
    shift 4
    begin=$(date +%s)
    (
        timeout=60 # where nothing stands still, a loaded machine is no reason
        [ $variable = FAKECUDA_FAIL ] || { timeout=2 && leave_what_hangs; }
        export "$variable=$fault"
        fails "$code" "$text" $train --timeout $timeout --devices cuda:0-3 "$@"
    ) || exit 1
    took=$(($(date +%s) - begin))
    [ $took -le 30 ] || die "took $took s: $fault, $*"
    ! grep -q 'no event orders' err || { cat err; die "a race after a fault: $fault, $*"; }
}

# Others wait for a GPU that stands still, some of them in their own streams: the line names one that was waited for.
lost="waited 2.0 seconds"
for peers in 1 0; do
    export FAKECUDA_PEERS=$peers
    for strategy in ddp dp pipeline mp; do
        stops 1 "fails, as FAKECUDA_FAIL orders" FAKECUDA_FAIL "device=2,n=150" --strategy $strategy
        # in the middle of a step
        case $strategy in mp | pipeline) op=product ;; *) op=convolution ;; esac
        stops 4 "$lost" FAKECUDA_STALL "device=2,op=$op,n=9" --strategy $strategy
    done
    stops 1 "fails, as FAKECUDA_FAIL orders" FAKECUDA_FAIL "device=2,n=150" --strategy hybrid --mesh data=2,pipe=2
    stops 4 "$lost" FAKECUDA_STALL "device=2,op=convolution,n=9" --strategy hybrid --mesh data=2,pipe=2
done
unset FAKECUDA_PEERS

# what is enqueued for talking: the tree's additions, copies between GPUs or with the host
stops 1 "GPU 1: add of partial sums" FAKECUDA_FAIL "device=1,op=add of partial sums,n=5" --strategy ddp
stops 1 "GPU 1: copy" FAKECUDA_FAIL "device=1,op=copy,n=7" --strategy ddp
stops 1 "GPU 1: copy" FAKECUDA_FAIL "device=1,op=copy,n=7" --strategy pipeline
stops 4 "$lost" FAKECUDA_STALL "device=1,op=copy,n=7" --strategy ddp
stops 4 "$lost" FAKECUDA_STALL "device=1,op=copy,n=7" --strategy pipeline
# copies with the host: the host does not stand in them
for op in upload download; do
    for n in 1 20; do
        stops 4 "$lost" FAKECUDA_STALL "device=0,op=$op,n=$n" --strategy single --devices cuda:0
    done
    FAKECUDA_PEERS=0
    export FAKECUDA_PEERS
    stops 4 "$lost" FAKECUDA_STALL "device=1,op=$op,n=5" --strategy ddp --devices cuda:0/0-1,cuda:1
    unset FAKECUDA_PEERS
done
stops 1 "GPU 0: download" FAKECUDA_FAIL "device=0,op=download" --strategy single --devices cuda:0

# calls that fail
for n in 1 2; do
    stops 1 "memory; use a smaller batch or more shards" FAKECUDA_FAIL "device=0,op=cudaMalloc,n=$n" --strategy single --devices cuda:0
done
stops 1 "no 8 MiB of pinned memory on the host" FAKECUDA_FAIL "device=1,op=cudaHostAlloc,n=2" --strategy ddp
for call in cudaStreamCreateWithFlags cudaEventCreateWithFlags cudaEventRecord cudaStreamWaitEvent cudaMemcpyAsync \
    cudaStreamQuery cudaEventQuery cudnnCreate cublasLtCreate; do
    stops 1 "GPU 1: $call fails, as FAKECUDA_FAIL orders" FAKECUDA_FAIL "device=1,op=$call" --strategy ddp
done
stops 1 "GPU 1: cudaEventRecord fails" FAKECUDA_FAIL "device=1,op=cudaEventRecord,n=12" --strategy ddp

# slow is not lost
export FAKECUDA_STALL="device=2,op=convolution,n=9,seconds=0.5"
ok $train --timeout 60 --strategy ddp --devices cuda:0-3
unset FAKECUDA_STALL
slow=$(hash_of_out)
ok $train --strategy single --devices cuda:0
same "$slow" "$(hash_of_out)" "the weights of a slow run"

FAKECUDA_FAIL=step=1
export FAKECUDA_FAIL
fails 1 "FAKECUDA_FAIL='step=1': write device=N,op=NAME,n=N" $train --devices cuda:0

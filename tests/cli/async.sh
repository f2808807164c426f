# The asynchronous test backend from the command line: the bits of the CPU whatever the order, and a device that fails or
# stands still ends the run in time, with the right code and a line that says which, when and at what.
. "$SOURCE/tests/cli/harness"

train="train --data digits --model lenet5 --shards 4 --threads-per-device 1 --batch-size 250 --lr 0.05 --epochs 1
    --workers 0 --print-freq 1000"

ok $train --devices cpu:0
want=$(hash_of_out)
for seed in 1 2 3; do
    export CVY_ASYNC_SEED=$seed
    for how in "single --devices async:0" "ddp --devices async:0-3" "dp --devices async:0-1" \
        "pipeline --devices async:0-2" "hybrid --mesh data=2,pipe=2 --devices cpu:0-3 --backend async"; do
        ok $train --strategy $how
        same "$(hash_of_out)" "$want" "the weights of $how, order $seed"
    done
done
unset CVY_ASYNC_SEED

# stops CODE TEXT VARIABLE FAULT ARGUMENTS…: with this fault in device 2 of 4 the run ends with CODE, says TEXT, and
# takes no longer than the timeout and what it takes to train so far.
stops() {
    code=$1 text=$2 variable=$3 fault=$4
    shift 4
    timeout=60 # where nothing stands still, a loaded machine is no reason
    [ $variable = CVY_ASYNC_FAIL ] || timeout=3
    begin=$(date +%s)
    export "$variable=$fault"
    fails "$code" "$text" $train --timeout $timeout --devices async:0-3 "$@"
    unset "$variable"
    took=$(($(date +%s) - begin))
    [ $took -le 30 ] || die "took $took s: $fault, $*"
}

for strategy in ddp dp pipeline mp; do
    stops 1 "async:2: step 3: " CVY_ASYNC_FAIL "device=2,step=3" --strategy $strategy
done
stops 1 "async:2: step 3: conv2d_backward_weights of \"run B0.0 " CVY_ASYNC_FAIL \
    "device=2,step=3,op=conv2d_backward_weights" --strategy ddp
stops 1 "async:2: step 3: reduce of \"reduce" CVY_ASYNC_FAIL "device=2,step=3,op=reduce" --strategy ddp
stops 4 "step 3" CVY_ASYNC_STALL "device=2,step=3,op=reduce" --strategy ddp
has err "async:2"
has err "bucket 0"
stops 4 "step 3" CVY_ASYNC_STALL "device=2,step=3,op=send" --strategy pipeline
has err "async:2"
# whichever deadline ends first: that of who waits for the activations, or that of who does not get on with sending them
grep -qE 'activations|send of "send F' err || { cat err; die "not said at what"; }
stops 4 "step 3" CVY_ASYNC_STALL "device=2,step=3,seconds=1000" --strategy hybrid --mesh data=2,pipe=2
has err "async:2"

CVY_ASYNC_FAIL=stage=1
export CVY_ASYNC_FAIL
fails 2 "CVY_ASYNC_FAIL='stage=1': write device=N,step=N,op=NAME" $train --devices async:0

# GPUs of several processes, with the stand-in for CUDA: each process has GPUs of its own that look like the same ones to
# all, so that NCCL would refuse them, and everything passes through the hosts. The bits of one process.
. "$SOURCE/tests/cluster/harness"

[ -f "$BUILD/fakecuda/libconvoy_cuda.so" ] || skip "the CUDA plugin was not built: there are no headers of CUDA and cuDNN"
export CONVOY_PLUGINS="$BUILD/fakecuda:$BUILD"
run="train --data digits --model lenet5 --epochs 1 --batch-size 250 --shards 8 --workers 1"

# shellcheck disable=SC2086  # words
ok $run --devices cuda:0
want=$(hash_of_out)
# In fp16 from a loss scale that is too large: every process skips the same updates and ends with the same scale.
half="$run --amp fp16 --batch-size 100 --shards 4 --print-freq 1"
# shellcheck disable=SC2086
ok $half --devices cuda:0 --output-dir begun
sed 's/"scale": 65536.0/"scale": 67108864.0/' begun/last/state.json >state
cp state begun/last/state.json
rm begun/last/manifest.json # it says that the state is another
again() { # WHERE: a copy of the run, to go on with
    rm -rf "$1"
    cp -r begun "$1"
}
again alone
ok train --resume alone --epochs 2
want_half=$(hash_of_out)
skipped=$(grep -c '"skipped":true' alone/metrics.jsonl)
[ "$skipped" -ge 1 ] && [ "$(grep -c '"skipped":false' alone/metrics.jsonl)" -ge 18 ] || die "$skipped updates skipped"

# shellcheck disable=SC2086
for library in $libraries; do
    together $library 2 $run --devices cuda:0
    same "$(hash_of_out)" "$want" "$library, 2 processes of a GPU"
    together $library 2 $run --devices cuda:0-1
    same "$(hash_of_out)" "$want" "$library, 2 processes of 2 GPUs"
    together $library 2 $run --devices cuda:0 --strategy pipeline
    same "$(hash_of_out)" "$want" "$library, a pipeline over 2 processes"
    together $library 2 $run --devices cuda:0-1 --strategy hybrid --mesh data=2,pipe=2
    same "$(hash_of_out)" "$want" "$library, 2x2 over 2 processes"
    for strategy in ddp pipeline; do
        again two
        together $library 2 train --resume two --epochs 2 --devices cuda:0 --strategy $strategy
        same "$(hash_of_out)" "$want_half" "$library, 2 processes in fp16, $strategy"
        same "$(grep -c '"skipped":true' two/metrics.jsonl)" "$skipped" "$library, skipped updates, $strategy"
    done
    echo "$library"
done

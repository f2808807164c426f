# GPUs of several processes, with the stand-in for CUDA: each process has GPUs of its own that look like the same ones to
# all, so that NCCL would refuse them, and everything passes through the hosts. The bits of one process.
. "$SOURCE/tests/cluster/harness"

[ -f "$BUILD/fakecuda/libconvoy_cuda.so" ] || skip "the CUDA plugin was not built: there are no headers of CUDA and cuDNN"
export CONVOY_PLUGINS="$BUILD/fakecuda:$BUILD"
run="train --data digits --model lenet5 --epochs 1 --batch-size 250 --shards 8 --workers 1"

# shellcheck disable=SC2086  # words
ok $run --devices cuda:0
want=$(hash_of_out)
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
    echo "$library"
done

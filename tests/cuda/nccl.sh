# What passes by NCCL between GPUs that do not reach each other's memory: sums, and the messages between stages. The
# same bits as one device, in any order, and who fails or hangs leaves nobody waiting.
. "$SOURCE/tests/cuda/harness"
[ "$SANITIZE" != thread ] || skip "many minutes with ThreadSanitizer, which sees the same code in cuda.strategies"

export FAKECUDA_PEERS=0
# shards of 7 and 8 images: the room for images grows while messages are under way
train="train --data synthetic:1x8x8,classes=10,images=120 --model resnet20 --epochs 1 --batch-size 60 --shards 8"
seeds="0 1 2"
[ -z "$SANITIZE" ] || seeds=0 # slow
stages="--strategy pipeline --schedule"

ok $train --devices cuda:0
want=$(hash_of_out)
ok $train --devices cuda:0 --sync-bn
want_sync=$(hash_of_out)
for seed in $seeds; do
    export FAKECUDA_SEED=$seed
    for how in "--devices cuda:0-1" "--devices cuda:0-1 --strategy mp" "--devices cuda:0-1 $stages gpipe" \
        "--devices cuda:0-1 $stages 1f1b" "--devices cuda:0-3 $stages gpipe" "--devices cuda:0-3 $stages 1f1b" \
        "--devices cuda:0-3 --strategy hybrid --mesh data=2,pipe=2"; do
        ok $train $how
        same "$(hash_of_out)" "$want" "$how, seed $seed"
    done
    ok $train --devices cuda:0-2 --sync-bn
    same "$(hash_of_out)" "$want_sync" "3 GPUs, sync-bn, seed $seed"
done

# NCCL refuses two of its members on one GPU: these pass through the host
ok $train --devices cuda:0,0/1,1
same "$(hash_of_out)" "$want" "3 devices on 2 GPUs"

export FAKECUDA_FAIL="op=ncclSend,n=9"
fails 4 "ncclSend fails" $train --devices cuda:0-1
fails 4 "ncclSend fails" $train --devices cuda:0-3 $stages 1f1b # no sums there: a message
export FAKECUDA_FAIL="op=ncclRecv,n=9"
fails 4 "ncclRecv fails" $train --devices cuda:0-3 $stages 1f1b
export FAKECUDA_FAIL="op=NCCL,n=3"
fails 1 "NCCL (stream" $train --devices cuda:0-1
# the others wait for its messages, on the host: it finds out itself, though it waits there too
export FAKECUDA_FAIL="device=1,op=NCCL,n=5"
fails 1 "NCCL (stream" $train --devices cuda:0-3 $stages 1f1b
export FAKECUDA_FAIL="device=1,op=ncclCommInitRankConfig"
fails 4 "ncclCommInitRankConfig" $train --devices cuda:0-1 --timeout 3
export FAKECUDA_FAIL="device=1,op=ncclCommInitRankConfig,n=3" # of the link back
fails 4 "ncclCommInitRankConfig" $train --devices cuda:0-1 $stages 1f1b --timeout 3
unset FAKECUDA_FAIL
leave_what_hangs
export FAKECUDA_STALL="device=1,op=NCCL,n=3"
fails 4 "waited 3." $train --devices cuda:0-1 --timeout 3
export FAKECUDA_STALL="device=1,op=NCCL,n=9"
fails 4 "waited 3." $train --devices cuda:0-2 $stages 1f1b --timeout 3

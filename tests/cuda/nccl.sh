# Sums from device to device by NCCL, for GPUs that do not reach each other's memory: the same bits as one device, in any
# order, and who fails or hangs leaves nobody waiting. Messages between stages pass through the host then.
. "$SOURCE/tests/cuda/harness"
[ "$SANITIZE" != thread ] || skip "many minutes with ThreadSanitizer, which sees the same code in cuda.strategies"

export FAKECUDA_PEERS=0
train="train --data digits --model resnet20 --epochs 1 --batch-size 250 --shards 8"

ok $train --devices cuda:0
want=$(hash_of_out)
ok $train --devices cuda:0 --sync-bn
want_sync=$(hash_of_out)
for seed in 0 1; do
    [ -z "$SANITIZE" ] || [ $seed -eq 0 ] || continue # slow
    export FAKECUDA_SEED=$seed
    ok $train --devices cuda:0-1
    same "$(hash_of_out)" "$want" "2 GPUs, seed $seed"
    ok $train --devices cuda:0-2 --sync-bn
    same "$(hash_of_out)" "$want_sync" "3 GPUs, sync-bn, seed $seed"
    ok $train --devices cuda:0-3 --strategy hybrid --mesh data=2,pipe=2
    same "$(hash_of_out)" "$want" "2x2 GPUs, seed $seed"
done

# NCCL refuses two of its members on one GPU: these pass through the host
ok $train --devices cuda:0,0/1,1
same "$(hash_of_out)" "$want" "3 devices on 2 GPUs"

export FAKECUDA_FAIL="op=ncclSend,n=9"
fails 4 "ncclSend fails" $train --devices cuda:0-1
export FAKECUDA_FAIL="op=NCCL,n=3"
fails 1 "NCCL (stream" $train --devices cuda:0-1
export FAKECUDA_FAIL="device=1,op=ncclCommInitRankConfig"
fails 4 "ncclCommInitRankConfig" $train --devices cuda:0-1 --timeout 3
unset FAKECUDA_FAIL
leave_what_hangs
export FAKECUDA_STALL="device=1,op=NCCL,n=3"
fails 4 "waited 3." $train --devices cuda:0-1 --timeout 3

# --fast-reduce: NCCL adds up the gradients, in an order of its own (the stand-in's goes round a ring): near what the tree
# gives, other bits by another number of GPUs, and the same ones for all of them in every run.
. "$SOURCE/tests/cuda/harness"
[ "$SANITIZE" != thread ] || skip "many minutes with ThreadSanitizer, which sees the same code in cuda.strategies"

train="train --data synthetic:1x8x8,classes=10,images=96 --model resnet20 --epochs 1 --batch-size 32 --shards 8
    --lr 0.01 --print-freq 1"
loss() { tail -n 1 "$1/metrics.jsonl" | grep -o '"val_loss":[0-9.e+-]*' | cut -d : -f 2; }

ok $train --devices cuda:0-2 --output-dir tree
exact=$(hash_of_out)
ok $train --devices cuda:0-2 --fast-reduce --output-dir fast
fast=$(hash_of_out)
has out "--fast-reduce: the weights depend on the number of devices"
has fast/run.json '"fast-reduce": true'
has fast/last/state.json '"fast_reduce": true'
grep -qa '"fast_reduce":"true"' fast/last/model.safetensors || die "the card does not say it"
! grep -qa fast_reduce tree/last/model.safetensors || die "the card of the tree says it"
[ "$fast" != "$exact" ] || die "the comparison says nothing"
awk "BEGIN { d = $(loss tree) - $(loss fast); exit !(d * d < 1e-4) }" || die "losses $(loss tree) and $(loss fast)"

export FAKECUDA_SEED=1 FAKECUDA_PEERS=0
ok $train --devices cuda:0-2 --fast-reduce
same "$(hash_of_out)" "$fast" "another order of the streams"
ok $train --devices cuda:0-3 --fast-reduce
[ "$(hash_of_out)" != "$fast" ] || die "as many bits by 4 GPUs as by 3"
ok $train --devices cuda:0-3 --fast-reduce --strategy hybrid --mesh data=2,pipe=2
ok $train --devices cuda:0-1 --fast-reduce --sync-bn
# every replica judged its part of the images: the same as the first one's weights do
ok eval --weights fast --data synthetic:1x8x8,classes=10,images=96 --batch-size 32 --shards 8 --devices cuda:0 --json
has out "\"loss\": $(loss fast | cut -c 1-9)"

ok train --resume fast --epochs 2 --no-fast-reduce
has err "sums --no-fast-reduce (was --fast-reduce)"
fails 2 "--fast-reduce: the backend cpu has no NCCL" $train --devices cpu:0-1 --fast-reduce
fails 2 "--fast-reduce: strategy single on 1 device adds up nothing" $train --devices cuda:0 --fast-reduce
fails 2 "--fast-reduce: strategy pipeline on 2 devices adds up nothing" $train --devices cuda:0-1 --fast-reduce --strategy pipeline
fails 2 "--fast-reduce: two of the devices are on one GPU" $train --devices cuda:0/0-1 --fast-reduce
export FAKECUDA_FAIL="op=ncclAllReduce,n=3"
fails 4 "ncclAllReduce fails" $train --devices cuda:0-1 --fast-reduce

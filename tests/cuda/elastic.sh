# --elastic: a run whose GPUs are fewer than before goes on with those that are left, and ends with the same bits.
. "$SOURCE/tests/cli/harness"
[ -f "$BUILD/fakecuda/libconvoy_cuda.so" ] || skip "the CUDA plugin was not built: there are no headers of CUDA and cuDNN"
export CONVOY_PLUGINS="$BUILD/fakecuda"

train="train --data synthetic:1x8x8,classes=10,images=64 --model lenet5 --batch-size 16 --lr 0.05 --workers 0"
FAKECUDA_DEVICES=4 ok $train --epochs 2 --devices cuda:0-3
hash=$(hash_of_out) || exit 1

FAKECUDA_DEVICES=4 interrupted "epoch 2/2" $train --epochs 2 --print-freq 1 --devices cuda:0-3 --output-dir run >out 2>err
FAKECUDA_DEVICES=2 fails 2 "devices: there is no cuda:3" train --resume run
FAKECUDA_DEVICES=2 ok train --resume run --elastic
has err "convoy: warning: 2 of the devices cuda:0-3 are not here: training takes cuda:0-1"
same "$(hash_of_out)" "$hash" "half of the GPUs"

FAKECUDA_DEVICES=1 ok $train --epochs 2 --devices cuda:0,cuda:2-3 --shards 4 --elastic
has err "2 of the devices cuda:0,cuda:2-3 are not here: training takes cuda:0"
same "$(hash_of_out)" "$hash" "one GPU from the start, S of four"
FAKECUDA_DEVICES=3 ok $train --epochs 2 --devices cuda:0-3 --elastic
has err "1 of the devices cuda:0-3 is not here"
same "$(hash_of_out)" "$hash" "three GPUs, S of those that were asked for"
FAKECUDA_DEVICES=1 fails 2 "devices: none of the 2 is here" $train --epochs 1 --devices cuda:2-3 --elastic

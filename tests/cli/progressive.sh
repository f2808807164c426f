# --progressive-resize: training images grow epoch by epoch; the same bits on any devices with any workers, and of a run
# that was stopped in the middle of an epoch; models and sizes that do not go with it are refused at the start.
. "$SOURCE/tests/cli/harness"
data="--data synthetic:3x24x24,classes=4,images=96 --model resnet20 --batch-size 32 --pad 2 --flip --cutmix-alpha 1"
train="train $data --epochs 3 --shards 2 --threads-per-device 1 --progressive-resize 8:24:8"

ok $train --devices cpu:0 --print-freq 1
want=$(hash_of_out) || exit 1
has err "epoch 1: training images of 8x8"
has err "epoch 2: training images of 16x16"
has err "epoch 3: training images of 24x24"
ok $train --devices cpu:0-1 --workers 0 --model-ema # an average beside the weights changes nothing
same "$(hash_of_out)" "$want" "two devices, no workers"
ok $train --devices cpu:0-1 --strategy pipeline --workers 3
same "$(hash_of_out)" "$want" "a pipeline, three workers"
ok train $data --epochs 3 --shards 2 --threads-per-device 1 --devices cpu:0
test "$(hash_of_out)" != "$want" || die "the flag changes nothing"

ok train $data --epochs 1 --devices cpu:0 --progressive-resize 16:16 # smaller than validation's, in all epochs
has err "epoch 1: training images of 16x16"

# stopped in the epoch of 16x16: the one that goes on has never been at 8x8
interrupted "epoch 2/3, step 1/" $train --devices cpu:0 --print-freq 1 --output-dir run
ok train --resume run --devices cpu:0-1
same "$(hash_of_out)" "$want" "stopped and resumed"
! grep -q "warning" err || { cat err; die "a warning, though nothing changed"; }
ok train --resume run --progressive-resize 16:24:8 --epochs 4
has err "otherwise than it began"
has err "sizes=16:24:8 of 4 epochs"

fails 2 "must be like 160:224" train $data --progressive-resize 8-24
fails 2 "images grow" train $data --progressive-resize 24:8
fails 2 "validation images are 24x24" train $data --progressive-resize 8:32
fails 2 "this model takes images of one size only" train --data digits --model lenet5 --epochs 2 \
    --progressive-resize 6:8:2

# the same of files, of which windows are cut and resized; and on the asynchronous test backend
make_set
files="train --data folder:set --model resnet20 --input 3x16x16 --crop 16x16 --preset imagenet --batch-size 5 --epochs 2
    --shards 2 --threads-per-device 1 --progressive-resize 8:16:8"
ok $files --devices cpu:0 --workers 0
has err "epoch 1: training images of 8x8"
want=$(hash_of_out) || exit 1
ok $files --devices cpu:0-1 --workers 3
same "$(hash_of_out)" "$want" "files, two devices, three workers"
ok $files --devices async:0-1
same "$(hash_of_out)" "$want" "files, the asynchronous backend"

# What the program tells about itself: models, data, devices, operators, plans.
. "$SOURCE/tests/cli/harness"

ok models
for model in simple lenet5 resnet20 resnet32 resnet56 resnet18_cifar resnet18 resnet50; do
    has out "$model"
done
has out 11689512
ok models --model resnet18_cifar --batch-size 128 --json
has out '"parameters": 11173962'
ok data
has out "folder:DIR"
ok data digits
has out "training: 1437 images"
has out "validation: 360 images"
ok devices
has out "cpu:0"
ok devices --json
has out '"backend": "reference"'

ok explain --model lenet5 --input 1x8x8 --strategy ddp --devices cpu:0-1
has out "2 devices: cpu:0-1"
for pass in build fuse autodiff choose program; do
    ok explain --model lenet5 --data digits --pass $pass
    has out conv2d
done
ok explain --model simple
fails 2 "did you mean fuse?" explain --model lenet5 --pass fues

ok check --backend reference
has out conv2d_backward_weights
! grep -q FAILED out || die "the reference fails against itself"

# Fine-tuning: a new head on old weights, frozen layers; the same bits on two devices, and after a resume.
. "$SOURCE/tests/cli/harness"

ok train $quick --epochs 1 --output-dir base
tune="train $quick --weights base --num-classes 12 --freeze conv*,fc1.bias"
fails 3 "holds a model of 10 classes, not 12" $tune --epochs 1
ok $tune --replace-head --epochs 2 --output-dir one
has err "the head is new: fc3.weight f32[10,84] by f32[12,84], fc3.bias f32[10] by f32[12]"
want=$(hash_of_out) || exit 1
grep -q 'conv1\|fc1.bias' one/last/optimizer.safetensors && die "frozen parameters have state"
grep -q 'fc1.weight' one/last/optimizer.safetensors || die "the others have none"
ok $tune --replace-head --epochs 2 --devices cpu:0-1 --strategy ddp
same "$(hash_of_out)" "$want" "ddp"
ok $tune --replace-head --epochs 2 --devices cpu:0-1 --strategy pipeline
same "$(hash_of_out)" "$want" "pipeline"
ok eval --data digits --weights one

# flags that a run began with go on; others are refused
ok train $quick --weights "$SOURCE/tests/data/lenet5.pth" --replace-head --freeze 'conv*' --epochs 1 --output-dir two
ok train --resume two --epochs 2
want=$(hash_of_out) || exit 1
ok train $quick --weights "$SOURCE/tests/data/lenet5.pth" --replace-head --freeze 'conv*' --epochs 2
same "$(hash_of_out)" "$want" "resumed"
fails 2 "--freeze 'conv2.*': the checkpoint two/last was trained with --freeze 'conv*'" \
    train --resume two --epochs 3 --freeze 'conv2.*'
fails 2 "--freeze 'conv*': the checkpoint one/last" train --resume one --epochs 3 --freeze 'conv*'

# what a step is made of without them, and what it takes
ok explain --model lenet5 --input 1x8x8 --num-classes 10 --freeze 'conv*' --pass autodiff
sed -n '/^# after/,$p' out >after
! grep -q 'conv2d_backward_weights' after || die "frozen layers have gradients"
ok bench step --model lenet5 --input 1x8x8 --num-classes 10 --batch-size 8 --steps 1 --freeze 'conv*'
! grep -q 'conv2d_backward' out || die "a step goes back through frozen layers"
has out linear_backward

fails 2 "give the --weights" train $quick --replace-head
fails 3 "holds the model 'lenet5', not 'resnet20'" train --data digits --model resnet20 --weights base --replace-head
fails 2 "'nix': no parameter" train $quick --freeze nix
fails 2 "nothing is left to train" train $quick --freeze '*'

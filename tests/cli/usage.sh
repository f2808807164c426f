# Wrong usage: exit code 2, one line that names the thing and what to do.
. "$SOURCE/tests/cli/harness"

fails 2 "unknown flag --modle; did you mean --model?" train --modle lenet5
fails 2 "unknown flag --batchsize; did you mean --batch-size?" train --batchsize=3
fails 2 "unknown command 'trian'; did you mean 'train'?" trian
fails 2 "did you mean resnet18?" train --data digits --model restnet18
fails 2 "did you mean sgd?" train --data digits --model lenet5 --opt sdg
fails 2 "did you mean cosine?" train --data digits --model lenet5 --lr-scheduler cosin
fails 2 "did you mean 'digits'" train --data digts --model lenet5
fails 2 "no model is named: give --model NAME; \`convoy models\` lists them" train --data digits
fails 2 "no data set is named: give --data SPEC, such as digits or folder:DIR" train --model lenet5
fails 2 "--epochs: needs a value" train --epochs
fails 2 "--lr nan: must be a finite number" train $quick --lr nan
fails 2 "--lr -1: must be at least 0" train $quick --lr -1
fails 2 "--epochs 0: must be from 1 to" train $quick --epochs 0
fails 2 "--input 3x8: must be CxHxW" train $quick --input 3x8
fails 2 "--shards -1: must be from 0 to 65536" train $quick --shards -1
fails 2 "--momentum: the optimiser adamw has no such attribute" train $quick --opt adamw --momentum 0.9
fails 2 "adamw has no attribute \"beta3\"; did you mean \"beta1\"?" train $quick --opt adamw --opt-args beta3=1
fails 2 "--batch-size 1438: the training set 'digits' has only 1437 images" train $quick --batch-size 1438
fails 2 "--num-classes 9: the data 'digits' have 10 classes" train $quick --num-classes 9
fails 2 "is no classifier" train --model simple --data synthetic:1x12x12,classes=2,images=64
fails 2 "no backend 'tpu' here; did you mean cpu; \`convoy devices\` lists what there is" train $quick --devices tpu:0
fails 2 "cannot read 'cpu:0-'" train $quick --devices cpu:0-
fails 2 "cannot read 'cpu:2-1'" train $quick --devices cpu:2-1
fails 2 "cpu:1 is named twice" train $quick --devices cpu:0-1,1
fails 2 "cpu devices are not shared; write cpu:0,cpu:1" train $quick --devices cpu:0/1
CONVOY_PLUGINS=nowhere fails 1 "no libconvoy_cuda.so in nowhere" train $quick --devices cuda:0
fails 2 "--mean has 1 numbers, --std 0" train $quick --mean 0.5
fails 2 "--data-path and --data: give one of them" train $quick --data-path .
fails 2 "--weights and --resume" train $quick --weights a --resume b
fails 2 "--lr-warmup-epochs 1: onecycle warms up by itself; leave the flag out" train $quick --lr-scheduler onecycle --lr-warmup-epochs 1
fails 2 "'digits': no such argument" train digits
fails 2 "nothing to predict" predict --weights run
fails 2 "both are needed" predict --weights run --input X.safetensors
fails 2 "image files do not go together with --input" predict --weights run --input X.safetensors image.jpg
fails 2 "image files do not go together with --output" predict --weights run --output Y.safetensors image.jpg
for flag in output-dir resume weights; do fails 2 "--$flag: is empty" train $quick --$flag ""; done
fails 2 "--lr-warmup-epochs 3: more than the 2 of --epochs" train $quick --epochs 2 --lr-warmup-epochs 3
fails 2 "--opt-args: dampening is given twice" train $quick --opt-args "dampening=0.1 dampening=0.2"
fails 2 "--opt-args: momentum is given twice" train $quick --momentum 0.9 --opt-args momentum=0.8
fails 2 "no weights" eval --data digits

"$CONVOY" >out 2>err
same $? 2 "exit code without arguments"
has err "usage: convoy COMMAND"

ok --version
has out "convoy "
ok train --help
for flag in --model --data --data-path --batch-size --epochs --workers --opt --lr --momentum --wd --label-smoothing \
    --lr-scheduler --lr-warmup-epochs --resume --output-dir --test-only --devices --strategy --shards \
    --threads-per-device --conv-algo --amp --tf32 --nondeterministic "--[no-]graphs" --config; do
    has out "$flag"
done
has out "sgd, adamw"

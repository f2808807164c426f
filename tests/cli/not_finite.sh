# NaN in weights or images gives one line and no result: exit code 1 where the network says so, 3 where the data do.
. "$SOURCE/tests/cli/harness"

ok train $quick --epochs 1 --output-dir run
# the last four bytes of the file belong to a parameter: now a NaN
weights=run/last/model.safetensors
size=$(wc -c <$weights)
head -c $((size - 4)) $weights >nan.safetensors
printf '\0\0\300\177' >>nan.safetensors

safetensors X.safetensors '{"images":{"dtype":"F32","shape":[2,1,8,8],"data_offsets":[0,512]}}'
head -c 512 /dev/zero >>X.safetensors
fails 1 "X.safetensors: image 0: the logit of class 9 is nan: the weights or the image are not finite" \
    predict --weights nan.safetensors --input X.safetensors --output Y.safetensors
[ ! -e Y.safetensors ] || die "it failed and left Y.safetensors"
fails 1 "the loss of nan.safetensors on 'digits' is not finite: the weights or an image are not" \
    eval --data digits --weights nan.safetensors
[ ! -s out ] || ! grep -q top- out || die "a figure was printed"
fails 1 "the loss of nan.safetensors on 'digits' is not finite: the weights or an image are not" \
    eval --data digits --weights nan.safetensors --json

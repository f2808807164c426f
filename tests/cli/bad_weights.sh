# Weights that do not fit, or are no weights: exit code 3, the difference or the reason named.
. "$SOURCE/tests/cli/harness"

ok train $quick --epochs 1 --output-dir run
eval="eval --data digits"
fails 3 "holds the model 'lenet5', not 'resnet20'" $eval --model resnet20 --weights run
fails 2 "have 12 classes, the network 10 (--num-classes, or what its weights say): it was trained on others" \
    eval --data synthetic:1x8x8,classes=12,images=24 --weights run
fails 3 "holds a model of 10 classes, not 4: --replace-head takes all but the last layer" \
    train --data synthetic:1x8x8,classes=4,images=8 --model lenet5 --batch-size 4 --weights run
fails 3 "run/best/model.safetensors holds a model of 10 classes, not 4" eval --data synthetic:1x8x8,classes=4,images=8 --num-classes 4 --weights run
fails 3 "no/such: No such file or directory" $eval --model lenet5 --weights no/such
mkdir bare
fails 3 "bare: no checkpoint is there" $eval --model lenet5 --weights bare
fails 3 "README.md: is neither a safetensors file nor PyTorch's .pth" train $quick --epochs 1 --weights "$SOURCE/README.md"

# without the card the tensors themselves must fit
bad() { # bad TEXT: what is said of bad.safetensors
    fails 3 "$1" $eval --model lenet5 --weights bad.safetensors
    has err "bad.safetensors: "
}
safetensors bad.safetensors '{"conv9.weight":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}'
bad "has no tensor 'conv1.weight', which this model needs"
: >bad.safetensors
bad "is empty"
head -c 2000 run/last/model.safetensors >bad.safetensors
bad "tensor 'conv2.weight': its bytes 688 to 10288 do not lie within the file's "
printf '\377\377\377\377\0\0\0\0{}' >bad.safetensors # header length past the end
bad "it says that its header has 4294967295 bytes, but the file has 10"
printf '\377\377\377\377\377\377\377\377{}' >bad.safetensors
bad "it says that its header has 18446744073709551615 bytes, but the file has 10"
safetensors bad.safetensors '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}'
printf '123456789012' >>bad.safetensors # overlapping offsets
bad "tensor 'b': its bytes begin at 4, but those before it end at 8"
safetensors bad.safetensors '{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}'
printf '12345678' >>bad.safetensors
bad "tensor 'a': dimension 0 of its shape is not a number from 0 on"
safetensors bad.safetensors '{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}}'
printf '12345678' >>bad.safetensors # 2^64 elements: the product overflows
bad "tensor 'a': its shape overflows"
safetensors bad.safetensors '{"a":'
bad "its header is not right at byte 13"

# a card that lies
safetensors bad.safetensors '{"__metadata__":{"convoy":"1","model":"lenet5","num_classes":"-5"}}'
bad 'metadata "num_classes" is "-5": must be a whole number in range'
safetensors bad.safetensors '{"__metadata__":{"convoy":"1","model":"lenet5"}}'
bad 'metadata "num_classes" is missing, though "model" is there'

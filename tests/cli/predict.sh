# After training: eval, predict on image files, and from tensor to tensor.
. "$SOURCE/tests/cli/harness"
images=$SOURCE/tests/data/images

ok train $quick --epochs 2 --output-dir run
top1=$(sed -n 's/^done: top-1 \([0-9.]* %\) of 360 images.*/\1/p' out)
ok eval --weights run/last --data digits
has out "top-1 $top1"
has out "of 360 images"
ok eval --weights run/last/model.safetensors --data digits --devices cpu:0-1 --json
has out '"images": 360'
ok train $quick --test-only --weights run/last
has out "top-1 $top1"

# images in colour of any size, classes by name
mkdir -p set/train/cat set/train/dog set/val/cat set/val/dog
for split in train val; do
    for class in cat dog; do
        cp "$images/444.jpg" "$images/rgb.png" "$images/grey.jpg" set/$split/$class
    done
done
first=$images/444.jpg
ok train --data-path set --model resnet20 --input 3x16x16 --batch-size 2 --epochs 1 --lr 0.01 --output-dir coloured
ok predict "$first" --weights coloured
grep -Eq "^$first: (cat|dog) [0-9.]+ %, (cat|dog) [0-9.]+ %$" out || { cat out; die "no prediction"; }
ok predict "$first" "$first" --weights coloured --topk 1 --json
same "$(grep -c '"probability"' out)" 2 "one guess for each of two images"
has out '"class": "'
fails 3 "no/such.jpg: cannot be opened: No such file or directory" predict no/such.jpg --weights coloured
# one that cannot be read costs the others nothing
echo "a letter" >letter.png
fails 3 "1 of 3 images could not be read, see above; the others have answers" \
    predict "$first" letter.png "$images/rgb.png" --weights coloured --batch-size 2
has err "no answer: letter.png: "
same "$(cut -d: -f1 out | tr '\n' ' ')" "$first $images/rgb.png " "images that have an answer"
fails 3 "1 of 2 images could not be read" predict letter.png "$images/rgb.png" --weights coloured --json
same "$(grep -c '"file"' out)" 1 "answers as JSON"

# tensors: two images of zeros, all logits written
safetensors X.safetensors '{"images":{"dtype":"F32","shape":[2,1,8,8],"data_offsets":[0,512]}}'
head -c 512 /dev/zero >>X.safetensors
ok predict --model lenet5 --num-classes 10 --weights run/last/model.safetensors --input X.safetensors \
    --output Y.safetensors
has Y.safetensors '"logits"'
has Y.safetensors '[2,10]'
safetensors X.safetensors '{"images":{"dtype":"F32","shape":[64],"data_offsets":[0,256]}}'
head -c 256 /dev/zero >>X.safetensors
fails 3 "N,C,H,W" predict --model lenet5 --weights run/last --input X.safetensors --output Z.safetensors
[ ! -e Z.safetensors ] || die "it failed and left Z.safetensors"
ln X.safetensors same.safetensors
fails 2 "--output same.safetensors: is the file of --input, which would be lost" predict --weights run/last \
    --input X.safetensors --output same.safetensors
fails 2 "is the file of --weights, which would be lost" predict --weights Y.safetensors --input X.safetensors --output Y.safetensors

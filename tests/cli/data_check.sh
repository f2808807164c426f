# `convoy data SPEC --check` reads everything and lists all that is bad, in order, whatever the threads.
. "$SOURCE/tests/cli/harness"
images=$SOURCE/tests/data/images

for split in train val; do
    mkdir -p set/$split/cat
    cp "$images/444.jpg" "$images/rgb.png" set/$split/cat
done
ok data folder:set --check
has out "1 class: cat"
has out "checked: all 4 images are good"

head -c 300 "$images/444.jpg" >set/train/cat/a.jpg
echo "a letter" >set/train/cat/b.png
: >set/val/cat/c.jpg
for i in $(seq 200); do ln -s "$images/rgb.png" set/train/cat/link$i.png; done # some batches of images between them
echo "a letter" >set/train/cat/z.png
for workers in 1 3; do
    fails 3 "'folder:set': 4 of 208 images are bad" data folder:set --check --workers $workers
    grep '^bad: ' out | sed 's/^bad: \([^:]*\): .*/\1/' >found$workers
    printf 'set/%s\n' train/cat/a.jpg train/cat/b.png train/cat/z.png val/cat/c.jpg | diff - found$workers ||
        die "with $workers workers"
done
has out "a.jpg: is not a whole JPEG"
fails 2 "--check: name the data set" data --check

# NaN among the images of a tensor file: by checking, and by whoever loads that batch
safetensors nan.safetensors '{"images":{"dtype":"F32","shape":[3,1,4,4],"data_offsets":[0,192]},"labels":{"dtype":"I64","shape":[3],"data_offsets":[192,216]}}'
head -c 188 /dev/zero >>nan.safetensors
printf '\0\0\300\177' >>nan.safetensors # the last value of image 2
head -c 24 /dev/zero >>nan.safetensors
fails 3 "2 of 6 images are bad" data tensors:nan.safetensors --check
has out "image 2 holds nan"
fails 3 "'tensors:nan.safetensors': image 2 holds nan" train --model lenet5 --data tensors:nan.safetensors --epochs 1 --batch-size 3

# `convoy data check SPEC`: what is bad or odd, by kind, the same for any number of threads.
. "$SOURCE/tests/cli/harness"
images=$SOURCE/tests/data/images

mkdir -p set/train/cat set/train/dog set/val/cat set/val/dog
cp "$images/444.jpg" "$images/420.jpg" set/train/cat
cp "$images/rgb.png" "$images/grey.png" "$images/cmyk.jpg" set/train/dog
cp "$images/lossy.webp" set/val/cat/really.png
cp "$images/444.jpg" set/val/dog/again.jpg
cp "$images/palette.png" set/train/cat/1.png
cp "$images/palette.png" set/train/cat/2.png
ok data check folder:set
has out "checked: all 9 images can be read"
has out "wrong_suffix: 1 ("
has out "  val: set/val/cat/really.png: WebP"
has out "converted: 4 ("
has out "  train: set/train/dog/cmyk.jpg: CMYK"
has out "  train: set/train/dog/grey.png: grey"
has out "duplicate: 1 ("
has out "  train: set/train/cat/2.png: as set/train/cat/1.png"
has out "duplicate_across: 1 ("
has out "  val: set/val/dog/again.jpg: as set/train/cat/444.jpg"
has out "tiny: 9 ("
! grep -q 'bad:' out || die "a good file is called bad"

head -c 400 "$images/444.jpg" >set/train/cat/cut.jpg
head -c 100 "$images/rgb.png" >set/train/cat/cut.png
head -c 60 "$images/lossy.webp" >set/val/cat/cut.webp
: >set/train/dog/empty.png
echo "a letter" >set/val/dog/letter.jpg
ln -s nowhere set/val/dog/gone.jpg
# width and height of 65535 in the header
{
    head -c 16 "$images/rgb.png"
    printf '\0\0\377\377\0\0\377\377'
    tail -c +25 "$images/rgb.png"
} >set/train/dog/huge.png
for workers in 1 3; do
    fails 3 "would stop a training" data check folder:set --workers $workers
    cp out out$workers
done
cmp -s out1 out3 || die "the result depends on the number of threads"
has out "zero_bytes: 1 ("
has out "huge: 1 ("
has out "  bad: train: set/train/dog/huge.png: its header says 65535x65535 pixels"
has out "truncated: 3 ("
has out "  bad: train: set/train/cat/cut.jpg: is not a whole JPEG"
has out "  bad: val: set/val/cat/cut.webp: is not a whole WebP"
has out "  bad: val: set/val/dog/letter.jpg: is text"

fails 3 "would stop a training" data check folder:set --json
has out '"kind": "truncated"'
has out '"path": "set/train/dog/empty.png"'
# listed once each, and in all
same "$(grep -c '"stops": true' out)" "$(sed -n 's/^  "stops": \([0-9]*\),*$/\1/p' out)" "bad samples in JSON"

fails 2 "name one data set" data check
fails 3 "nothing" data check folder:nothing
ok data check digits

# --fix moves what is bad, from both splits, and nothing else
fails 2 "say --fix move:DIR" data check folder:set --fix delete
fails 2 "lies within the data set" data check folder:set --fix move:set/bad
rmdir set/bad
fails 2 "it is for folder:DIR" data check digits --fix move:bad
find set -type f | LC_ALL=C sort >before
mkdir -p bad/set/train/dog && echo mine >bad/set/train/dog/empty.png
fails 1 "File exists" data check folder:set --fix move:bad
rm bad/set/train/dog/empty.png
ok data check folder:set --fix move:bad
has out "the other 9 can be read"
has out "bad: val: set/val/dog/letter.jpg"
(find set -type f && cd bad && find set -type f) | LC_ALL=C sort >after
cmp -s before after || die "files were lost or renamed: $(diff before after)"
test -e bad/set/val/dog/letter.jpg || die "nothing was moved of val"
ok data check folder:set
has out "checked: all 9 images can be read"

# many batches of good images between bad ones, in order, whatever the threads
for i in $(seq 200); do ln -s "$images/rgb.png" set/train/cat/link$i.png; done
for file in train/cat/a.jpg train/cat/b.png train/cat/z.png val/cat/c.jpg; do echo "a letter" >set/$file; done
for workers in 1 3; do
    fails 3 "'folder:set': 4 of 213 images would stop a training" data check folder:set --workers $workers
    grep '^ *bad: ' out | sed 's/^ *bad: [a-z]*: \([^:]*\): .*/\1/' >found
    printf 'set/%s\n' train/cat/a.jpg train/cat/b.png train/cat/z.png val/cat/c.jpg | diff - found || die "with $workers workers"
done

# NaN among the images of a tensor file: by checking, and by whoever loads that batch
safetensors nan.safetensors '{"images":{"dtype":"F32","shape":[3,1,4,4],"data_offsets":[0,192]},"labels":{"dtype":"I64","shape":[3],"data_offsets":[192,216]}}'
head -c 188 /dev/zero >>nan.safetensors
printf '\0\0\300\177' >>nan.safetensors # the last value of image 2
head -c 24 /dev/zero >>nan.safetensors
fails 3 "2 of 6 images would stop a training" data check tensors:nan.safetensors
has out "image 2 holds nan"
fails 3 "'tensors:nan.safetensors': image 2 holds nan" train --model lenet5 --data tensors:nan.safetensors --epochs 1 --batch-size 3

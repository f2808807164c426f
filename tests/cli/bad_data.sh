# Bad data: exit code 3, one line that names the file and the reason.
. "$SOURCE/tests/cli/harness"
images=$SOURCE/tests/data/images
train="train --model resnet20 --input 3x16x16 --batch-size 2 --epochs 1"

fails 3 "no/such/folder: cannot be opened as a folder: No such file or directory" $train --data folder:no/such/folder
mkdir empty
fails 3 "empty: holds no folders, one for each class is needed" $train --data-path empty
mkdir -p hollow/cat hollow/dog
fails 3 "hollow: 2 class folders without images (.jpg, .jpeg, .png, .webp): cat, dog: fill or remove" $train --data-path hollow

# a good set, then one bad file after another in it
good=$images/444.jpg
png=$images/rgb.png
for split in train val; do
    mkdir -p set/$split/cat set/$split/dog
    for class in cat dog; do
        cp "$good" set/$split/$class/a.jpg
        cp "$png" set/$split/$class/b.png
    done
done
ok $train --data-path set
bad() { # bad NAME TEXT: with the file NAME in the training set, TEXT is said, and NAME
    fails 3 "$2" $train --data-path set
    has err "$1"
    rm "set/train/dog/$1"
}
size=$(wc -c <"$good")
head -c $((size / 2)) "$good" >set/train/dog/short.jpg
bad short.jpg "not a whole JPEG"
size=$(wc -c <"$png")
head -c $((size / 2)) "$png" >set/train/dog/short.png
bad short.png "not a whole PNG"
echo "this is a letter, not an image" >set/train/dog/letter.jpg
bad letter.jpg "is text, not a JPEG, PNG or WebP image (it begins with \"this is a letter\")"
: >set/train/dog/nothing.jpg
bad nothing.jpg "the file is empty"
ln -s nowhere set/train/dog/gone.jpg
bad gone.jpg "gone.jpg: cannot be opened: No such file or directory"
mkfifo set/train/dog/pipe.jpg
bad pipe.jpg "pipe.jpg: is not a regular file"

# labels: one image, label 7 of a set that says it has 2 classes; and a negative one
label_file() { # label_file FILE BYTES: 4 images of zeros, the last label as octal bytes
    safetensors "$1" '{"images":{"dtype":"F32","shape":[4,1,8,8],"data_offsets":[0,1024]},"labels":{"dtype":"I64","shape":[4],"data_offsets":[1024,1056]}}'
    head -c 1048 /dev/zero >>"$1"
    printf "$2" >>"$1"
}
tensors="train --model lenet5 --batch-size 2 --epochs 1"
label_file negative.safetensors '\377\377\377\377\377\377\377\377'
fails 3 "negative.safetensors: label -1 of image 3: must be 0 to 999999" $tensors --data tensors:negative.safetensors
label_file seven.safetensors '\7\0\0\0\0\0\0\0'
fails 2 "--num-classes 2: the data 'tensors:seven.safetensors' have 8 classes; give at least that" $tensors --data tensors:seven.safetensors --num-classes 2
fails 3 "no/such.safetensors: cannot be opened: No such file or directory" $tensors --data tensors:no/such.safetensors

# Names that are not UTF-8, or hold control characters: classes are refused, images are shown with escapes.
. "$SOURCE/tests/cli/harness"
images=$SOURCE/tests/data/images
train="train --data-path set --model resnet20 --input 3x16x16 --batch-size 2 --epochs 1 --lr 0.01"
latin=$(printf 'caf\351') # é in Latin-1
bell=$(printf 'be\007ll')

for class in cat "$bell"; do
    mkdir -p "set/train/$class" "set/val/$class"
    cp "$images/444.jpg" "$images/rgb.png" "set/train/$class"
    cp "$images/grey.jpg" "set/val/$class"
done
ok $train --output-dir run
cp "$images/444.jpg" "$latin.jpg"
ok predict "$latin.jpg" "$images/rgb.png" --weights run
has out 'caf\xE9.jpg: '
has out 'be\x07ll'
ok predict "$latin.jpg" "$images/rgb.png" --weights run --json
has out '"file": "caf\\xE9.jpg"'
same "$(grep -c '"file"' out)" 2 "no file is left out"
ok data folder:set
has out 'be\x07ll'

# a remark names the folder without a val folder
cp -r set/train "$bell"
fails 3 "no class has 10 images" data "folder:$bell"
has err 'be\x07ll has no val or test folder'

mkdir "set/train/$latin" "set/val/$latin"
cp "$images/444.jpg" "set/train/$latin"
cp "$images/444.jpg" "set/val/$latin"
fails 3 'set/train/caf\xE9: the name of this class folder is not UTF-8' $train
fails 2 "--data-path: is not UTF-8" train --model resnet20 --data-path "$latin"

# Data that are almost right: what is meant is said, or done.
. "$SOURCE/tests/cli/harness"
images=$SOURCE/tests/data/images
train="train --model lenet5 --input 3x16x16 --batch-size 2 --epochs 1 --resize 20 --crop 16x16"

mkdir -p photos/ant photos/bee
cp "$images/444.jpg" "$images/rgb.png" photos/ant
cp "$images/420.jpg" "$images/grey.png" photos/bee
fails 2 "data 'photos': no format is named, did you mean 'folder:photos'?" $train --data photos
: >list.csv
fails 2 "did you mean 'csv:list.csv'?" $train --data list.csv
fails 2 "unknown format 'fodler', did you mean 'folder'?" $train --data fodler:photos
fails 2 "unknown command 'data chekc'; did you mean 'data check'?" data chekc folder:photos
ok data digits

# too few images to hold some out: no training, but all are looked at
head -c 400 "$images/444.jpg" >photos/bee/cut.jpg
fails 3 "no class has 10 images, so none is held out: add photos/val" data check folder:photos
has out "bad: train: photos/bee/cut.jpg"
rm photos/bee/cut.jpg

# images of formats that are not read are counted
mkdir -p set/train set/val
cp -r photos/* set/train
cp -r photos/* set/val
ok $train --data folder:set
! grep -q 'left out' err || { cat err; die "something was left out of good data"; }
for name in a.bmp b.GIF c.heic; do : >set/train/ant/$name; done
ok $train --data folder:set
others="3 images of formats that are not read are left out: 1 .bmp, 1 .gif, 1 .heic: convert them to JPEG, PNG or WebP"
has err "set/train: $others"
ok data folder:set # from the kept list
has err "set/train: $others"
tar -cf set.tar -C set/train ant bee
tar -cf val.tar -C set/val ant bee
for round in walk kept; do
    ok data tar:set.tar,val=val.tar
    has err "set.tar: $others"
    same "$(grep -c 'left out' err)" 1 "warnings of the archives ($round)"
done
mkdir set/train/cow
: >set/train/cow/a.tiff
fails 3 "set/train: 1 class folder without images (.jpg, .jpeg, .png, .webp): cow: convert those of other formats, fill" \
    $train --data folder:set
has err "set/train: 4 images of formats that are not read are left out: 1 .bmp, 1 .gif, 1 .tiff, 1 .heic: convert them"
rm -r set/train/cow

# a run among the class folders would be a class at the next start; beside train/ and val/, or hidden, it is none
ln -s set/train link
for dir in photos photos/run photos/runs/1/; do
    fails 2 "--output-dir $dir: lies in photos, whose folders are read as classes" \
        $train --data folder:photos --output-dir $dir
done
for dir in set/train/run set/val/run link/run "$PWD/set/./train/run" set/../set/val/deep/run; do
    fails 2 "--output-dir $dir: lies in set/" $train --data folder:set --output-dir "$dir"
done
fails 2 "lies in set/train, whose" $train --data folder:set --output-dir link/run --batch-size auto
[ -z "$(find photos set -name 'run*')" ] || die "a refused run made its folder"
for dir in set/run photos-run set/train/.run; do
    ok $train --data folder:set --output-dir $dir
    ok data folder:set
done
rm -r set/train/.run

# a list without names of columns, whose third field is the split
for file in ant/444.jpg ant/rgb.png bee/420.jpg bee/grey.png; do
    echo "photos/$file,${file%/*},train"
    echo "photos/$file,${file%/*},val"
done >split.csv
ok data csv:split.csv
has out "training: 4 images"
has out "validation: 4 images"
echo "photos/ant/rgb.png,ant,tarin" >>split.csv
fails 3 "split.csv: line 9: split 'tarin': there are train and val" data csv:split.csv

! grep -q 'passed over' err || die "a split was passed over"
for i in 1 2 3 4 5 6 7 8 9 10; do echo "photos/ant/rgb.png,ant,0.$i"; done >scores.csv
ok data csv:scores.csv
has err "warning: scores.csv: fields after path,label are passed over: for a split let the first row be path,label,split"
same "$(grep -c 'passed over' err)" 1 "warnings of the list"

# the folder of the shards is made, but not among the classes; nor is that of files which are moved away
fails 2 "--to tar:photos/packed/deep: lies in photos, whose folders are read as classes" \
    data pack folder:photos --to tar:photos/packed/deep/set
fails 2 "--fix move:photos/bad: lies within the data set" data check folder:photos --fix move:photos/bad
same "$(ls photos | tr '\n' ' ')" "ant bee " "what lies in photos"
ok data pack folder:set --to tar:packed/deep/set
ok $train --data 'tar:packed/deep/set-train-*.tar,val=packed/deep/set-val-*.tar'
: >file
fails 1 "file: cannot make this folder: Not a directory" data pack folder:set --to tar:file/set

# Networks of one channel see images in colour as grey; --mean and --std are given for every channel.
. "$SOURCE/tests/cli/harness"
images=$SOURCE/tests/data/images

ok train $quick --epochs 1 --output-dir digits
ok predict "$images/444.jpg" "$images/rgb.png" "$images/grey.jpg" --weights digits
same "$(grep -c '%' out)" 3 "predictions of a network that learnt grey digits"
mkfifo fifo.jpg
fails 3 "fifo.jpg: is not a regular file" predict fifo.jpg --weights digits

for split in train val; do
    for class in cat dog; do
        mkdir -p set/$split/$class
        cp "$images/444.jpg" "$images/rgb.png" set/$split/$class
    done
done
train="train --data-path set --model lenet5 --batch-size 2 --epochs 1 --lr 0.01"
ok $train --input 1x16x16 --output-dir grey
ok predict "$images/rgb.png" --weights grey
ok eval --weights grey --data folder:set
fails 2 "the network takes images of 4 channels, those of 'folder:set' have 3" $train --input 4x16x16

ok $train --input 3x16x16 --mean 0.5 --std 0.25
ok $train --input 3x16x16 --mean 0.5,0.4,0.3 --std 0.25,0.25,0.25
fails 2 "--mean and --std have 2 numbers, images have 3 channels" $train --input 3x16x16 --mean 0.5,0.4 --std 1,1
fails 2 "--mean and --std have 3 numbers, images have 1 channels" $train --input 1x16x16 --mean 0,0,0 --std 1,1,1

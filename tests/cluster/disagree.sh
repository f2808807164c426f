# A process that cannot take part ends with its own code and the others say why; processes that were started differently
# all end with 2 and name the difference.
. "$SOURCE/tests/cluster/harness"

train() {
    lines train --data digits --model resnet20 --batch-size 64 --epochs 1000 --workers 1 --print-freq 1 --devices cpu:0 \
        --shards 4 --threads-per-device 1 --timeout 3 "$@"
}

# settle LIBRARY: four ranks to their end.
settle() {
    start "$1" 4
    until_there 20 code.0 code.1 code.2 code.3
    nobody_left
}

# differing LIBRARY TEXT: rank 2 has the arguments of args.2.
differing() {
    settle "$1"
    ended_with 2 0 1 2 3
    says "the processes of this run differ in .*rank 2 .*$2" 0 1 2 3
    rm args.2
}

mkdir -p folder/train/a folder/val/a folder/train/b folder/val/b
for place in train/a train/b val/a val/b; do
    for k in 1 2 3 4 5 6 7 8; do
        cp "$SOURCE/tests/data/images/rgb.png" folder/$place/$k.png
    done
done

for library in $libraries; do
    train >args
    lines $(train | sed 's/^resnet20$/lenet5/') >args.2
    differing $library "lenet5"
    lines $(train | sed 's/^64$/128/') >args.2
    differing $library "batch-size 128"
    lines $(train) --seed 5 >args.2
    differing $library "seed 5"
    lines $(train) --lr 0.2 >args.2
    differing $library "lr 0.2"
    lines $(train) --lr-scheduler cosine >args.2
    differing $library "lr-scheduler cosine"
    lines $(train) --mean 0.4 --std 0.5 >args.2
    differing $library "mean 0.4"
    lines $(train) --output-dir there >args.2
    differing $library "output-dir given"

    # all of them wrong: each says so and ends with its own code, whoever is first
    train --mesh data=3,pipe=1 >args
    settle $library
    [ "$library" = mpich ] || ended_with 2 0 1 2 3
    says "takes no mesh; --mesh data=3,pipe=1 goes with --strategy hybrid" 0 1 2 3

    train | sed 's/^--data$/--data-path/; s/^digits$/folder/; s/^64$/4/' >args
    lines --input 3x16x16 >>args
    cp -r folder fewer
    rm fewer/train/b/8.png
    sed 's/^folder$/fewer/' args >args.2
    differing $library "15 images"
    cp -r folder other
    mv other/train/b/8.png other/train/b/0.png
    sed 's/^folder$/other/' args >args.2
    differing $library "labels and file names"
    mv other/train/b other/train/c
    mv other/val/b other/val/c
    sed 's/^folder$/other/' args >args.2
    differing $library "class 1 of them: c"
    rm -r other

    sed 's/^folder$/missing/' args >args.2
    settle $library
    ended_with 3 2
    says "missing: cannot be opened as a folder: No such file or directory" 2
    ended_with 4 0 1 3
    says "rank 2 ended: missing: cannot be opened as a folder: No such file or directory" 0 1 3
    rm -r fewer args.2

    train --no-such-flag >args.2
    train >args
    settle $library
    [ "$(cat code.2)" -eq 2 ] || die "a wrong flag ends with $(cat code.2)"
    ended_with 4 0 1 3
    says "rank 2 ended: unknown flag --no-such-flag" 0 1 3
    rm args.2
    echo "$library"
done

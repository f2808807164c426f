/* Runs a fuzz target's entry once over every file of the folders given: what ctest does with the committed
 * corpus where libFuzzer itself is not linked in. Fails when there was no file to run. */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

/* Gives the target a copy of exactly the file's size, so that AddressSanitizer sees a read past its end. */
static bool replay(const char *path) {
    struct stat info;
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &info) != 0)
        return false;
    size_t n_bytes = (size_t)info.st_size;
    uint8_t *data = malloc(n_bytes + !n_bytes);
    bool is_read = data && fread(data, 1, n_bytes, file) == n_bytes;
    if (is_read)
        LLVMFuzzerTestOneInput(data, n_bytes);
    free(data);
    fclose(file);
    return is_read;
}

int main(int argc, char **argv) {
    int n_files = 0;
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        for (struct dirent *entry; folder && (entry = readdir(folder));) {
            char path[4096];
            snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
            if (entry->d_name[0] == '.')
                continue;
            if (!replay(path)) {
                fprintf(stderr, "replay: cannot read %s\n", path);
                return 1;
            }
            n_files++;
        }
        if (folder)
            closedir(folder);
    }
    printf("replay: %d files\n", n_files);
    return n_files > 0 ? 0 : 1;
}

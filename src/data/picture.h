/* Images of a batch as pictures for people. */
#ifndef CVY_DATA_PICTURE_H
#define CVY_DATA_PICTURE_H

#include <convoy/convoy.h>

/* Levels of image i of the batch, three a pixel; floats, whose range nobody knows, from their least to their most. */
void cvy_picture_rgb(const cvy_batch *batch, int64_t i, uint8_t *rgb);

#endif

/* Convoy: trains image-recognition networks on many devices, with the same bits on any number of them.
 *
 * The whole public interface is in the headers below; examples/ shows it at work. The way from a network to a run:
 *     cvy_graph    what is computed for a batch of images: layers, loss, named results
 *     cvy_plan     the graph bound to devices and a strategy
 *     cvy_session  the plan with weights and memory: it trains and evaluates
 *     cvy_loader   brings batches out of a cvy_dataset; or a program makes its own cvy_batch
 *
 * Conventions:
 *  - Functions that can fail return cvy_status; results come through the last parameters, untouched on
 *    failure unless said otherwise. The text of a thread's newest error is cvy_error(). Any of them may
 *    fail with CVY_ERR_MEMORY; the other codes are said.
 *  - Handles are opaque. What cvy_X_new or cvy_X_open made, cvy_X_free releases; _free accepts NULL. Texts and
 *    arrays that are passed in stay the caller's, and are copied where they are needed longer.
 *  - Pointers must be valid; NULL is allowed where it is said.
 *  - A field of an options or args struct that is 0 or NULL means the default that is given behind it.
 *  - Shapes are N,C,H,W: images, channels, height, width. Sizes of memory are in bytes, times in seconds.
 *  - "Collective": every process of the run must call it, in the same order. "Local": any process may.
 *    What says neither is Local.
 *  - One thread at a time may use a handle, or handles that were made of each other (a plan and its session, a
 *    data set's loader). Others are independent. Loaders of one data set may run in different threads.
 */
#ifndef CONVOY_H
#define CONVOY_H

#include <convoy/data.h>
#include <convoy/graph.h>
#include <convoy/session.h>
#include <convoy/status.h>

#endif

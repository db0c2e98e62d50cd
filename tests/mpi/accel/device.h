/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What accelerator.c takes for the memory of an accelerator, where a program has mapped it; and where the same memory
 * can be read and written, as a processor need not be able to touch the first.
 */
#ifndef ACCEL_DEVICE_H
#define ACCEL_DEVICE_H

#define DEVICE_ADDRESS ((char *) 0x500000000000)
#define DEVICE_BYTES   ((size_t) 1 << 30)
#define DEVICE_ALIAS   ((char *) 0x510000000000)
#define DEVICE_SECOND  (DEVICE_BYTES / 2)       /* from here on it is device 1's; before, device 0's */

static inline int on_device(const void *address)
{
    return (const char *) address >= DEVICE_ADDRESS && (const char *) address < DEVICE_ADDRESS + DEVICE_BYTES;
}

static inline int device_of(const void *address)
{
    return (size_t) ((const char *) address - DEVICE_ADDRESS) >= DEVICE_SECOND;
}

static inline char *alias_of(const void *address)
{
    char *at = (char *) address;

    return on_device(at) ? at - DEVICE_ADDRESS + DEVICE_ALIAS : at;
}

#endif

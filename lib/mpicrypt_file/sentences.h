/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Sentences for what the core refuses, which libmpicrypt_file and mpicrypt share.
 */
#ifndef MPICRYPT_FILE_SENTENCES_H
#define MPICRYPT_FILE_SENTENCES_H

/* For the topic of an opal_crypt_why_t; NULL: it has no sentence, so that its detail must do. */
const char *mpicrypt_sentence(const char *topic);

/* For a return code of the engine, of a block that cannot be read. */
const char *mpicrypt_sentence_of(int rc);

#endif

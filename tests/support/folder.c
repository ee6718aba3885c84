/* A temporary folder that a group of tests works in. */
#include "tests/support/folder.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[PATH_MAX];

int folder_make(void **state)
{
    (void)state;
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof(folder), "%s/stepcast-test-XXXXXX", temporary ? temporary : P_tmpdir);
    return mkdtemp(folder) == NULL || chdir(folder) != 0;
}

int folder_remove(void)
{
    return chdir("/") != 0 || rmdir(folder) != 0;
}

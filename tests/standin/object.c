/* Handles of libraries: kept until the end of the run, so that a use after its end is noticed. */
#include "tests/standin/internal.h"

#include <stdlib.h>
#include <string.h>

void *standin_object(const char *what, size_t size)
{
    struct standin_object *object = calloc(1, size);
    if (!object)
        return NULL;
    object->what = what;
    object->next = standin.objects;
    standin.objects = object;
    return object;
}

bool standin_object_ok(const char *call, const char *what, const void *handle)
{
    for (const struct standin_object *o = standin.objects; o; o = o->next)
        if (o == handle && !o->destroyed && !strcmp(o->what, what))
            return true;
    standin_complain("%s: this %s is destroyed, or never was", call, what);
    return false;
}

void standin_free_objects(void)
{
    while (standin.objects) {
        struct standin_object *next = standin.objects->next;
        free(standin.objects);
        standin.objects = next;
    }
}

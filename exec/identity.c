/* Names this machine as a measurement must know it. */
#include "exec/identity.h"

#include <stdio.h>
#include <string.h>

#include "exec/cores.h"

/* As the processor names itself; "" where it does not. */
static void name_processor(char *out, size_t size)
{
    char line[256];
    FILE *stream = fopen("/proc/cpuinfo", "r");
    out[0] = '\0';
    while (stream != NULL && fgets(line, sizeof(line), stream) != NULL) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
            colon[strcspn(colon, "\n")] = '\0';
            snprintf(out, size, "%s", colon + strspn(colon, ": "));
            break;
        }
    }
    if (stream != NULL) {
        fclose(stream);
    }
}

void sc_identity_here(const struct sc_backend *backend, int64_t cores, struct sc_identity *out)
{
    cpu_set_t set;
    memset(out, 0, sizeof(*out));
    name_processor(out->processor, sizeof(out->processor));
    out->cores = sc_cores_allowed(cores, &set);
    if (backend->library != NULL) {
        backend->library(out->library, sizeof(out->library));
    }
}

bool sc_identity_write(const struct sc_identity *identity, cJSON *profile)
{
    cJSON *object = cJSON_AddObjectToObject(profile, "measured_on");
    return object != NULL &&
           (identity->processor[0] == '\0' ||
            cJSON_AddStringToObject(object, "processor", identity->processor) != NULL) &&
           (identity->cores <= 0 ||
            cJSON_AddNumberToObject(object, "cores", (double)identity->cores) != NULL) &&
           (identity->library[0] == '\0' ||
            cJSON_AddStringToObject(object, "library", identity->library) != NULL) &&
           cJSON_AddStringToObject(object, "source", "what the machine says of itself") != NULL;
}

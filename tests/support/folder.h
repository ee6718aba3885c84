/* A temporary folder that a group of tests works in: the current folder from make to remove. */
#ifndef STEPCAST_TESTS_SUPPORT_FOLDER_H
#define STEPCAST_TESTS_SUPPORT_FOLDER_H

/* Setup of a cmocka group. */
int folder_make(void **state);
/* Leaves and removes the folder, which the caller has emptied; not 0 when something is left in it.
 */
int folder_remove(void);

#endif

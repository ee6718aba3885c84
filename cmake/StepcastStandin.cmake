# The stand-in for CUDA, cuBLASLt and NCCL (tests/standin): exec/cuda runs on the processor. Built
# where the headers of the three are found, whether or not there is nvcc; nothing of theirs is linked.
#
#   tests/standin/test_NAME.c    one cmocka program each     standin.NAME    target standin_NAME
#   tests/standin/*.c            the stand-in, in every one of them

find_path(STEPCAST_CUDA_HEADERS cuda_runtime_api.h
  HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES include)
find_path(STEPCAST_NCCL_HEADERS nccl.h HINTS ${STEPCAST_CUDA_HEADERS})

# Calls of the C library that tests/standin/threads.c and heap.c take over.
set(standin_wraps pthread_create pthread_join pthread_mutex_lock pthread_mutex_unlock pthread_cond_wait
  pthread_cond_timedwait pthread_cond_clockwait pthread_cond_signal pthread_cond_broadcast nanosleep
  clock_nanosleep usleep sched_yield
  malloc calloc realloc aligned_alloc posix_memalign strdup strndup asprintf free)
list(TRANSFORM standin_wraps PREPEND "LINKER:--wrap=")

function(stepcast_add_standin)
  if(NOT STEPCAST_CUDA_HEADERS OR NOT STEPCAST_NCCL_HEADERS
     OR NOT EXISTS ${STEPCAST_CUDA_HEADERS}/cublasLt.h)
    message(STATUS "  standin        OFF: no headers of CUDA, cuBLASLt and NCCL")
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS tests/standin/*.c)
  set(programs ${sources})
  list(FILTER programs INCLUDE REGEX "/test_[^/]*$")
  list(REMOVE_ITEM sources ${programs})

  # The backend of this build, or the same sources; and the list of backends with it.
  set(backend "")
  set(objects "")
  if(EXISTS ${PROJECT_SOURCE_DIR}/exec/cuda/cuda_backend.c)
    file(GLOB backend CONFIGURE_DEPENDS exec/cuda/*.c)
  endif()
  if(TARGET stepcast_cuda_objects)
    set(backend "")
    set(objects $<TARGET_OBJECTS:stepcast_cuda_objects>)
  endif()
  add_library(stepcast_standin OBJECT ${sources})
  add_library(stepcast_standin_backend OBJECT ${backend} exec/registry.c)
  if(backend OR objects)
    target_compile_definitions(stepcast_standin_backend PRIVATE STEPCAST_BACKEND_CUDA)
  endif()
  foreach(target stepcast_standin stepcast_standin_backend)
    target_include_directories(${target} SYSTEM PRIVATE ${STEPCAST_CUDA_HEADERS}
      ${STEPCAST_NCCL_HEADERS})
    target_link_libraries(${target} PUBLIC libstepcast)
  endforeach()

  # What the stand-in alone can show, and what needs the backend.
  if(NOT backend AND NOT objects)
    list(FILTER programs EXCLUDE REGEX "/test_(backend|orders|missing_waits|failing_calls)[.]c$")
  endif()
  foreach(file IN LISTS programs)
    stepcast_test_program(${file})
    get_filename_component(name ${file} NAME_WE)
    string(REGEX REPLACE "^test_" "standin_" target ${name})
    target_include_directories(${target} SYSTEM PRIVATE ${STEPCAST_CUDA_HEADERS}
      ${STEPCAST_NCCL_HEADERS})
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:stepcast_standin>
      $<TARGET_OBJECTS:stepcast_standin_backend> ${objects})
    target_link_options(${target} PRIVATE ${standin_wraps})
  endforeach()
endfunction()

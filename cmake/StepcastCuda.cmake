# The CUDA backend: the kernels by nvcc, everything else by the C compiler, warnings as errors, linked
# against the real libraries, so that a machine without a GPU still says whether it builds.
#
#   stepcast_cuda_kernels    exec/kernels/*.cu
#   stepcast_cuda_objects    exec/cuda/*.c (tests/standin links these objects with a stand-in)
#   stepcast_cuda_registry   the list of backends with this one in it
#
# They go into the command line, not into libstepcast: whoever links that needs nothing of CUDA's.

file(GLOB cuda_kernel_sources CONFIGURE_DEPENDS exec/kernels/*.cu)
file(GLOB cuda_sources CONFIGURE_DEPENDS exec/cuda/*.c)

find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
set(STEPCAST_HAVE_NCCL OFF)
if(NCCL_INCLUDE_DIR AND NCCL_LIBRARY)
  set(STEPCAST_HAVE_NCCL ON)
endif()

add_library(stepcast_cuda_kernels OBJECT ${cuda_kernel_sources})
target_include_directories(stepcast_cuda_kernels PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_options(stepcast_cuda_kernels PRIVATE
  "SHELL:-Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror")
set_target_properties(stepcast_cuda_kernels PROPERTIES CUDA_SEPARABLE_COMPILATION OFF
  POSITION_INDEPENDENT_CODE ON)

if(STEPCAST_HAVE_NCCL)
  add_library(stepcast_cuda_objects OBJECT ${cuda_sources})
  add_library(stepcast_cuda_registry OBJECT exec/registry.c)
  foreach(objects stepcast_cuda_objects stepcast_cuda_registry)
    target_link_libraries(${objects} PRIVATE stepcast_flags)
    target_compile_definitions(${objects} PRIVATE STEPCAST_BACKEND_CUDA=1)
    target_include_directories(${objects} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS}
      ${NCCL_INCLUDE_DIR})
    set_target_properties(${objects} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endforeach()
  if(TARGET stepcast)
    target_sources(stepcast PRIVATE $<TARGET_OBJECTS:stepcast_cuda_kernels>
      $<TARGET_OBJECTS:stepcast_cuda_objects> $<TARGET_OBJECTS:stepcast_cuda_registry>)
    target_link_libraries(stepcast PRIVATE CUDA::cudart CUDA::cublasLt ${NCCL_LIBRARY})
  endif()
else()
  message(STATUS "CUDA: no NCCL (nccl.h, libnccl): the kernels are compiled, the backend is not")
endif()
list(LENGTH cuda_sources cuda_count)
list(LENGTH cuda_kernel_sources cuda_kernel_count)
message(STATUS "CUDA ${CUDAToolkit_VERSION}: ${cuda_count} sources and ${cuda_kernel_count} of kernels for ${STEPCAST_CUDA_ARCHITECTURES}, NCCL ${STEPCAST_HAVE_NCCL}")

# The CUDA sources: compiled by nvcc with warnings as errors and linked against the real libraries,
# so that a machine without a GPU still says whether they build. Nothing of it is run here.
#
# exec/kernels/*.cu and exec/cuda/*.{c,cu} are taken where they exist. cmake/StepcastKernels.cmake
# may add files that both compilers take, through STEPCAST_CUDA_KERNEL_SOURCES.

file(GLOB cuda_sources CONFIGURE_DEPENDS exec/kernels/*.cu exec/cuda/*.c exec/cuda/*.cu)
list(APPEND cuda_sources ${STEPCAST_CUDA_KERNEL_SOURCES})
list(REMOVE_DUPLICATES cuda_sources)

find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
set(STEPCAST_HAVE_NCCL OFF)
if(NCCL_INCLUDE_DIR AND NCCL_LIBRARY)
  set(STEPCAST_HAVE_NCCL ON)
endif()

# The link check calls one function of each library, so that the linker cannot drop one.
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/cuda_link.c.in
"/* Generated: links what the CUDA backend needs. */
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#ifdef STEPCAST_HAVE_NCCL
#include <nccl.h>
#endif

int main(void)
{
    int version = 0;
    cudaError_t state = cudaRuntimeGetVersion(&version);
#ifdef STEPCAST_HAVE_NCCL
    if (ncclGetVersion(&version) != ncclSuccess) {
        return 1;
    }
#endif
    return state == cudaSuccess && cublasLtGetVersion() > 0 ? 0 : 1;
}
")
configure_file(${CMAKE_CURRENT_BINARY_DIR}/cuda_link.c.in ${CMAKE_CURRENT_BINARY_DIR}/cuda_link.c
  COPYONLY)

add_executable(stepcast_cuda_link ${CMAKE_CURRENT_BINARY_DIR}/cuda_link.c ${cuda_sources})
target_include_directories(stepcast_cuda_link SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(stepcast_cuda_link PRIVATE libstepcast CUDA::cudart CUDA::cublasLt)
target_compile_options(stepcast_cuda_link PRIVATE
  "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror>")
set_target_properties(stepcast_cuda_link PROPERTIES CUDA_SEPARABLE_COMPILATION OFF)
if(TARGET CUDA::cuda_driver)
  target_link_libraries(stepcast_cuda_link PRIVATE CUDA::cuda_driver)
endif()
if(STEPCAST_HAVE_NCCL)
  target_compile_definitions(stepcast_cuda_link PRIVATE STEPCAST_HAVE_NCCL=1)
  target_include_directories(stepcast_cuda_link SYSTEM PRIVATE ${NCCL_INCLUDE_DIR})
  target_link_libraries(stepcast_cuda_link PRIVATE ${NCCL_LIBRARY})
endif()
list(LENGTH cuda_sources cuda_count)
message(STATUS "CUDA ${CUDAToolkit_VERSION}: ${cuda_count} sources for ${STEPCAST_CUDA_ARCHITECTURES}, NCCL ${STEPCAST_HAVE_NCCL}")

# The CUDA backend: the kernels by nvcc, everything else by the C compiler, warnings as errors, linked
# against the real libraries, so that a machine without a GPU still says whether it builds.
#
#   stepcast_cuda_kernels    exec/kernels/*.cu
#   stepcast_cuda_objects    exec/cuda/*.c (tests/standin links these objects with a stand-in)
#   stepcast_cuda            both, as a module that the command line opens when it is asked for the
#                            backend: the libraries are large, and no other command needs them
#
#   stepcast_cuda_link       builds all of it and lets the command line open the module, whose every
#                            symbol must be found; no GPU is needed
#
# What the module uses of libstepcast it finds in the program that opens it.

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
  target_link_libraries(stepcast_cuda_objects PRIVATE stepcast_flags)
  target_include_directories(stepcast_cuda_objects SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS}
    ${NCCL_INCLUDE_DIR})
  set_target_properties(stepcast_cuda_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)

  add_library(stepcast_cuda MODULE $<TARGET_OBJECTS:stepcast_cuda_kernels>
    $<TARGET_OBJECTS:stepcast_cuda_objects>)
  set_target_properties(stepcast_cuda PROPERTIES PREFIX "" LINKER_LANGUAGE C)
  target_link_libraries(stepcast_cuda PRIVATE CUDA::cudart CUDA::cublasLt ${NCCL_LIBRARY})
  set_property(SOURCE exec/registry.c APPEND PROPERTY COMPILE_DEFINITIONS
    STEPCAST_CUDA_MODULE="stepcast_cuda.so")
  if(TARGET stepcast)
    set_target_properties(stepcast PROPERTIES ENABLE_EXPORTS ON BUILD_RPATH "\$ORIGIN"
      INSTALL_RPATH "\$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/stepcast")
    add_dependencies(stepcast stepcast_cuda)
    install(TARGETS stepcast_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/stepcast)
    set(open_module "run host_tiny-gpt_1rank_unfused --steps 1 --backend cuda 2>&1")
    set(not_there "-e 'undefined symbol' -e 'cannot open' -e 'no CUDA executor'")
    add_custom_target(stepcast_cuda_link DEPENDS stepcast VERBATIM
      COMMAND sh -c "! '$<TARGET_FILE:stepcast>' ${open_module} | grep ${not_there}")
  endif()
else()
  message(STATUS "CUDA: no NCCL (nccl.h, libnccl): the kernels are compiled, the backend is not")
endif()
list(LENGTH cuda_sources cuda_count)
list(LENGTH cuda_kernel_sources cuda_kernel_count)
message(STATUS "CUDA ${CUDAToolkit_VERSION}: ${cuda_count} sources and ${cuda_kernel_count} of kernels for ${STEPCAST_CUDA_ARCHITECTURES}, NCCL ${STEPCAST_HAVE_NCCL}")

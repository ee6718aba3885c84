# The kernels of exec/kernels, compiled for the host.
#
# stepcast_add_kernels(<library>) adds them to a library: one object library for each kind of
# processor (x86-64, -v3, -v4; elsewhere one plain one), chosen from at run time, and select.c.
# -ffast-math is for these objects only, never for linking (a link with it makes the whole process
# flush denormals). -fno-finite-math-only keeps infinities and NaNs; glibc's vector functions are
# tied to __FAST_MATH__, which that option takes away, hence the -D.
include(CheckCCompilerFlag)
include(CheckLibraryExists)

set(STEPCAST_KERNEL_FLAGS -O3 -ffast-math -fno-finite-math-only)
check_library_exists(mvec _ZGVbN4v_expf "" STEPCAST_HAVE_LIBMVEC)
if(STEPCAST_HAVE_LIBMVEC)
  if(CMAKE_C_COMPILER_ID MATCHES "Clang")
    check_c_compiler_flag(-fveclib=libmvec STEPCAST_HAVE_VECLIB)
    if(STEPCAST_HAVE_VECLIB)
      list(APPEND STEPCAST_KERNEL_FLAGS -fveclib=libmvec)
    endif()
  else()
    list(APPEND STEPCAST_KERNEL_FLAGS -U__FAST_MATH__ -D__FAST_MATH__)
  endif()
endif()
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
  # Asked to vectorise a loop that it cannot, clang warns; correctness does not depend on it.
  list(APPEND STEPCAST_KERNEL_FLAGS -Wno-pass-failed)
else()
  # gcc takes reciprocal estimates for vector divisions under -ffast-math: no gain where memory is
  # the limit, and they differ from the scalar remainder of a loop.
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
    list(APPEND STEPCAST_KERNEL_FLAGS -mno-recip)
  endif()
endif()

function(stepcast_add_kernels library)
  set(folder ${PROJECT_SOURCE_DIR}/exec/kernels)
  set(builds v1)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
    set(builds v1 v3 v4)
    set(x86 TRUE)
  endif()
  set(name_v1 "baseline")
  set(name_v3 "x86-64-v3")
  set(name_v4 "x86-64-v4")
  set(flags_v3 -march=x86-64-v3)
  set(flags_v4 -march=x86-64-v4 -mprefer-vector-width=512)
  foreach(build IN LISTS builds)
    set(objects ${library}_kernels_${build})
    add_library(${objects} OBJECT ${folder}/host_kernels.c)
    set_target_properties(${objects} PROPERTIES POSITION_INDEPENDENT_CODE ON C_STANDARD 11)
    target_include_directories(${objects} PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_options(${objects} PRIVATE ${STEPCAST_KERNEL_FLAGS} ${flags_${build}})
    target_compile_definitions(${objects} PRIVATE SC_KERNEL_BUILD=${build}
                                                  SC_KERNEL_NAME="${name_${build}}")
    target_sources(${library} PRIVATE $<TARGET_OBJECTS:${objects}>)
  endforeach()
  target_sources(${library} PRIVATE ${folder}/select.c)
  if(x86)
    set_property(SOURCE ${folder}/select.c APPEND PROPERTY COMPILE_DEFINITIONS SC_KERNELS_X86)
  endif()
  if(STEPCAST_HAVE_LIBMVEC)
    target_link_libraries(${library} PUBLIC mvec)
  endif()
  # The matrix-product libraries are loaded by name when first used (exec/host/blas.h).
  target_link_libraries(${library} PUBLIC m ${CMAKE_DL_LIBS})
  # Speed of the numerical layer, by hand: make bench_kernels.
  add_executable(bench_kernels EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tests/bench/bench_kernels.c)
  target_link_libraries(bench_kernels PRIVATE ${library})
endfunction()

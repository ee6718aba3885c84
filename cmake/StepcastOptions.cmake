# What can be chosen when configuring, and the libraries that are looked for.
#
# An option of three values (AUTO, ON, OFF) says what happens with a part that needs something
# beyond the required libraries: AUTO builds it where everything it needs is found, ON fails where
# something is missing, OFF leaves it out.

function(stepcast_option_auto name description)
  set(${name} AUTO CACHE STRING "${description} (AUTO, ON, OFF)")
  set_property(CACHE ${name} PROPERTY STRINGS AUTO ON OFF)
  if(NOT ${name} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "${name}: found \"${${name}}\", expected AUTO, ON or OFF")
  endif()
endfunction()

# Sets STEPCAST_HAVE_<part> from what was found; an error where ON was asked for in vain.
function(stepcast_decide part found missing)
  set(have OFF)
  if(STEPCAST_${part} STREQUAL "OFF")
    set(have OFF)
  elseif(found)
    set(have ON)
  elseif(STEPCAST_${part} STREQUAL "ON")
    message(FATAL_ERROR "STEPCAST_${part} is ON, but ${missing} was not found")
  endif()
  set(STEPCAST_HAVE_${part} ${have} PARENT_SCOPE)
endfunction()

stepcast_option_auto(STEPCAST_MPI "ranks as processes over MPI")
stepcast_option_auto(STEPCAST_GSL "fit with the GNU Scientific Library (GPL)")
stepcast_option_auto(STEPCAST_CUDA "compile and link the CUDA sources with nvcc")
set(STEPCAST_CUDA_ARCHITECTURES "80;90;100" CACHE STRING "GPU architectures nvcc compiles for")
set(STEPCAST_SANITIZE "" CACHE STRING "sanitizers, as for -fsanitize= (address,undefined | thread)")
option(STEPCAST_WERROR "warnings are errors" ON)
option(STEPCAST_TESTS "build the tests" ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo" FORCE)
endif()
# -O2 keeps the compiler from choosing -O3 for everything: kernels ask for it themselves. Assertions
# stay in: what they guard is not the hot path.
set(CMAKE_C_FLAGS_RELEASE "-O2 -g1")
# Sanitizers at -O0 take several times as long.
set(CMAKE_C_FLAGS_DEBUG "-O1 -g")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# ---- required libraries ----
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(CJSON REQUIRED IMPORTED_TARGET libcjson)
pkg_check_modules(LIBMD REQUIRED IMPORTED_TARGET libmd)
# Matrix products: oneDNN or OpenBLAS, opened by name when first used (exec/host/blas.c); nothing of
# them is needed to build.

# ---- optional libraries ----
if(NOT STEPCAST_MPI STREQUAL "OFF")
  find_package(MPI QUIET COMPONENTS C)
endif()
stepcast_decide(MPI "${MPI_C_FOUND}" "MPI for C")

# GPL: what is linked with it may only be passed on under the GPL. model/fit* has its own solver too.
if(NOT STEPCAST_GSL STREQUAL "OFF")
  pkg_check_modules(GSL QUIET IMPORTED_TARGET gsl)
endif()
stepcast_decide(GSL "${GSL_FOUND}" "the GNU Scientific Library (pkg-config gsl)")

set(CMAKE_CUDA_ARCHITECTURES ${STEPCAST_CUDA_ARCHITECTURES})
set(CMAKE_CUDA_STANDARD 17)
set(cuda_found OFF)
if(NOT STEPCAST_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  if(NOT CMAKE_CUDA_COMPILER AND EXISTS /usr/local/cuda/bin/nvcc)
    set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    find_package(CUDAToolkit QUIET)
    set(cuda_found ${CUDAToolkit_FOUND})
  endif()
endif()
stepcast_decide(CUDA "${cuda_found}" "nvcc with the CUDA toolkit")

# ---- flags of our own code ----
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
# An interface target, so that what is generated or foreign can be kept out of it.
add_library(stepcast_flags INTERFACE)
target_compile_definitions(stepcast_flags INTERFACE _GNU_SOURCE)
target_include_directories(stepcast_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(stepcast_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
  -Wstrict-prototypes -Wmissing-prototypes>
  $<$<AND:$<COMPILE_LANGUAGE:C>,$<BOOL:${STEPCAST_WERROR}>>:-Werror>)

if(STEPCAST_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:C>:-fsanitize=${STEPCAST_SANITIZE}>
    $<$<COMPILE_LANGUAGE:C>:-fno-omit-frame-pointer>
    $<$<COMPILE_LANGUAGE:C>:-fno-sanitize-recover=all>)
  add_link_options(-fsanitize=${STEPCAST_SANITIZE})
endif()

# ---- what was decided ----
function(stepcast_summary)
  message(STATUS "stepcast ${PROJECT_VERSION}")
  message(STATUS "  compiler       ${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}, ${CMAKE_BUILD_TYPE}")
  message(STATUS "  warnings       errors: ${STEPCAST_WERROR}")
  if(STEPCAST_SANITIZE)
    message(STATUS "  sanitizers     ${STEPCAST_SANITIZE}")
  endif()
  foreach(part MPI GSL CUDA)
    string(SUBSTRING "${part}               " 0 15 padded)
    message(STATUS "  ${padded}${STEPCAST_HAVE_${part}} (asked: ${STEPCAST_${part}})")
  endforeach()
  message(STATUS "  tests          ${STEPCAST_TESTS}")
endfunction()

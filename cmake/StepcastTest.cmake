# Tests, found by their folder. The folder is the CTest label:
#
#   tests/unit/test_NAME.c       one cmocka program each     unit.NAME       target unit_NAME
#   tests/scenario/NAME.c        likewise                    scenario.NAME   target scenario_NAME
#   tests/property/NAME.c        likewise                    property.NAME   target property_NAME
#   tests/standin/test_NAME.c    likewise, where there are CUDA's headers: cmake/StepcastStandin.cmake
#   tests/cli/NAME.case          a session at the shell      cli.NAME        tests/cli/run_case.py
#   tests/bad/NAME.case          wrong input, same format    bad.NAME
#   scripts/check_*              rules about the tree        tree.NAME
#   tests/support/memcheck.sh    sessions under valgrind     valgrind.memcheck
#   tests/support/slowlink.sh    scripts/slowlink.sh         slowlink.works (root only)
#
# A test program may say more about itself in a comment on one line near its top:
#
#   /* ctest: labels=threads timeout=300 ranks=4 */
#
# labels    further labels, comma-separated ("threads": also run under the thread sanitizer)
# timeout   seconds, instead of 120 (300 under a sanitizer)
# ranks     started by mpirun with so many processes; the test is left out without MPI
# serial    =1: no other test runs beside it
#
# A program that finds that it cannot run here exits with 77: skipped.

find_package(Python3 REQUIRED COMPONENTS Interpreter)
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)

# Time limits are there to end what hangs; sanitizers are slow.
set(stepcast_timeout 120)
if(STEPCAST_SANITIZE)
  set(stepcast_timeout 300)
endif()

# mpirun as root (containers), more ranks than cores, ranks not tied to one core, no copying through
# another process's memory (containers forbid it). Libraries below are not ours to mend: what they
# leak is suppressed by name. Open MPI unloads its plugins, so that their leaks have no name any
# more: tests of several ranks do not look for leaks, the others do.
set(stepcast_environment
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
  OMPI_MCA_btl_vader_single_copy_mechanism=none
  OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
  "ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1"
  "UBSAN_OPTIONS=print_stacktrace=1"
  "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/lsan.supp:print_suppressions=0"
  "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan.supp:second_deadlock_stack=1")

# Value of KEY=value in the "ctest:" comment of a test program, or "".
function(stepcast_directive file key out)
  file(STRINGS ${file} lines REGEX "/\\* ctest:.*\\*/" LIMIT_COUNT 1)
  set(value "")
  if(lines MATCHES "[ \t]${key}=([A-Za-z0-9_,]+)")
    set(value ${CMAKE_MATCH_1})
  endif()
  set(${out} "${value}" PARENT_SCOPE)
endfunction()

# stepcast_test(NAME LABEL label [TIMEOUT s] [LABELS ...] [SERIAL 1] COMMAND ...)
function(stepcast_test name)
  cmake_parse_arguments(arg "" "TIMEOUT;SERIAL" "LABELS;COMMAND" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT ${stepcast_timeout})
  endif()
  add_test(NAME ${name} COMMAND ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
    SKIP_RETURN_CODE 77 ENVIRONMENT "${stepcast_environment}")
  if(arg_SERIAL)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()

function(stepcast_test_program file)
  get_filename_component(folder ${file} DIRECTORY)
  get_filename_component(label ${folder} NAME)
  get_filename_component(name ${file} NAME_WE)
  string(REGEX REPLACE "^test_" "" name ${name})
  foreach(key labels timeout ranks serial)
    stepcast_directive(${file} ${key} ${key})
  endforeach()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  if(ranks AND NOT STEPCAST_HAVE_MPI)
    return()
  endif()

  set(target ${label}_${name})
  add_executable(${target} ${file})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY tests/${label})
  target_link_libraries(${target} PRIVATE stepcast_test_support)

  set(command $<TARGET_FILE:${target}>)
  if(ranks)
    set(command ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} $<TARGET_FILE:${target}>)
  endif()
  string(REPLACE "," ";" labels "${labels}")
  stepcast_test(${label}.${name} LABELS ${label} ${labels} TIMEOUT "${timeout}" SERIAL "${serial}"
    COMMAND ${command})
  if(ranks)
    set_property(TEST ${label}.${name} APPEND PROPERTY ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0")
  endif()
endfunction()

function(stepcast_case_tests label)
  file(GLOB cases CONFIGURE_DEPENDS tests/${label}/*.case)
  foreach(case IN LISTS cases)
    get_filename_component(name ${case} NAME_WE)
    stepcast_test(${label}.${name} LABELS ${label}
      COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/cli/run_case.py
        --binary $<TARGET_FILE:stepcast> --source ${PROJECT_SOURCE_DIR}
        --have "$<$<BOOL:${STEPCAST_HAVE_MPI}>:mpi>" ${case})
  endforeach()
endfunction()

# Everything that the tests folder holds, and the rules about the tree.
function(stepcast_add_tests)
  # One empty translation unit, so that the library exists before tests/support has a file.
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/support_empty.c "typedef int stepcast_support_empty;\n")
  file(GLOB support CONFIGURE_DEPENDS tests/support/*.c)
  add_library(stepcast_test_support STATIC ${support} ${CMAKE_CURRENT_BINARY_DIR}/support_empty.c)
  target_link_libraries(stepcast_test_support PUBLIC libstepcast PkgConfig::CMOCKA)
  target_compile_definitions(stepcast_test_support PUBLIC
    STEPCAST_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    STEPCAST_BINARY="${PROJECT_BINARY_DIR}/stepcast")

  foreach(label unit scenario property)
    file(GLOB files CONFIGURE_DEPENDS tests/${label}/*.c)
    foreach(file IN LISTS files)
      stepcast_test_program(${file})
    endforeach()
  endforeach()

  include(StepcastStandin)
  stepcast_add_standin()

  if(TARGET stepcast)
    stepcast_case_tests(cli)
    stepcast_case_tests(bad)
    if(STEPCAST_HAVE_MPI AND NOT STEPCAST_SANITIZE)
      stepcast_test(slowlink.works LABELS slowlink SERIAL 1 TIMEOUT 300
        COMMAND ${PROJECT_SOURCE_DIR}/tests/support/slowlink.sh ${PROJECT_SOURCE_DIR}
          $<TARGET_FILE:stepcast>)
    endif()
    if(NOT STEPCAST_SANITIZE) # neither runs under the other
      stepcast_test(valgrind.memcheck LABELS valgrind
        COMMAND ${PROJECT_SOURCE_DIR}/tests/support/memcheck.sh $<TARGET_FILE:stepcast>)
    endif()
  endif()

  stepcast_test(tree.runner LABELS tree
    COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/cli/test_run_case.py)
  file(GLOB checks CONFIGURE_DEPENDS scripts/check_*.py scripts/check_*.sh)
  foreach(check IN LISTS checks)
    get_filename_component(name ${check} NAME_WE)
    string(REGEX REPLACE "^check_" "" name ${name})
    set(interpreter "")
    if(check MATCHES "\\.py$")
      set(interpreter Python3::Interpreter)
    endif()
    stepcast_test(tree.${name} LABELS tree COMMAND ${interpreter} ${check})
  endforeach()
endfunction()

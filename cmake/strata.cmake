# Flags and the rules by which a folder becomes a library, a test program and a benchmark.

# -ffp-contract=off: a fused multiply-add happens only where the source says fma.
add_library(strata_flags INTERFACE)
target_compile_options(strata_flags INTERFACE
  -Wall -Wextra -Wpedantic -Werror -Wshadow -Wconversion -Wno-sign-conversion -ffp-contract=off)
target_include_directories(strata_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
# g++ 12 sees uninitialized members in moved variants and overlaps in string appends that are none.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(strata_flags INTERFACE -Wno-maybe-uninitialized -Wno-restrict)
  # Of files that are compiled together none is the main one, whose own types it lets a class hold.
  if(CMAKE_UNITY_BUILD)
    target_compile_options(strata_flags INTERFACE -Wno-subobject-linkage)
  endif()
endif()
if(STRATA_SANITIZE)
  target_compile_options(strata_flags INTERFACE
    -fsanitize=${STRATA_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(strata_flags INTERFACE -fsanitize=${STRATA_SANITIZE})
  if(STRATA_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(strata_flags INTERFACE -Wno-tsan)
  endif()
endif()

# strata_folder(name path DEPS libraries...): src/<path>/*.cc become the library strata_<name>,
# src/<path>/*_test.cc the test program <name>_test, src/<path>/*_bench.cc <name>_bench.
# STRATA_CORE_ONLY builds what the tests link and no other folder.
if(STRATA_CORE_ONLY)
  set(strata_unless_linked EXCLUDE_FROM_ALL)
endif()
function(strata_folder name path)
  cmake_parse_arguments(ARG "" "" "DEPS;EXTRA_SOURCES" ${ARGN})
  set(folder ${PROJECT_SOURCE_DIR}/src/${path})
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cc)
  set(tests ${sources})
  set(benchmarks ${sources})
  list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER benchmarks INCLUDE REGEX "_bench\\.cc$")
  if(sources OR ARG_EXTRA_SOURCES)
    add_library(strata_${name} STATIC ${strata_unless_linked} ${sources} ${ARG_EXTRA_SOURCES})
    target_link_libraries(strata_${name} PUBLIC strata_flags ${ARG_DEPS})
  else()
    add_library(strata_${name} INTERFACE)
    target_link_libraries(strata_${name} INTERFACE strata_flags ${ARG_DEPS})
  endif()
  if(tests AND STRATA_TESTS AND (NOT STRATA_CORE_ONLY OR name IN_LIST STRATA_CORE_TESTS))
    strata_test(${name}_test SOURCES ${tests} DEPS strata_${name})
  endif()
  if(benchmarks AND STRATA_BENCH)
    strata_bench(${name}_bench SOURCES ${benchmarks} DEPS strata_${name})
  endif()
endfunction()

# strata_bench(name SOURCES files... DEPS libraries...): a program of Google Benchmark; `make bench`
# runs them all.
function(strata_bench name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE strata_flags ${ARG_DEPS} benchmark::benchmark_main)
endfunction()

# What every test program includes, parsed once for all. Only the sanitizers' preset asks for that:
# with precompiled headers g++ 12 warns of overflows that are none.
function(strata_test_headers)
  file(WRITE ${PROJECT_BINARY_DIR}/test_headers.cc "")
  add_library(strata_test_headers OBJECT ${PROJECT_BINARY_DIR}/test_headers.cc)
  target_link_libraries(strata_test_headers PRIVATE strata_flags fmt::fmt GTest::gmock)
  target_precompile_headers(strata_test_headers PRIVATE <gtest/gtest.h> <gmock/gmock.h>
                                                        <fmt/format.h> <string> <vector>)
endfunction()

# strata_test(name SOURCES files... DEPS libraries...): a GoogleTest program run by ctest.
# STRATA_SOURCE_DIR lets tests find committed data and, beside the checkout, shared goldens.
# STRATA_SLOW is 1 where an emulator or sanitizers run the tests, which then try fewer and smaller
# values.
function(strata_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(NOT TARGET strata_test_headers)
    strata_test_headers()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  # Most of what a test compiles are the headers of GoogleTest: once for several files.
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON)
  target_precompile_headers(${name} REUSE_FROM strata_test_headers)
  target_link_libraries(${name} PRIVATE strata_flags ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  set(slow 0)
  if(CMAKE_CROSSCOMPILING_EMULATOR OR STRATA_SANITIZE)
    set(slow 1)
  endif()
  target_compile_definitions(${name} PRIVATE STRATA_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                             STRATA_BINARY_DIR="${PROJECT_BINARY_DIR}"
                                             STRATA_SLOW=${slow})
  add_test(NAME ${name} COMMAND ${name})
endfunction()

# The checks of the repository itself, each with a test that it can fail.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)

function(strata_check name)
  add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tests/${name}.py
                                ${ARGN})
  add_test(NAME ${name}_self_test
           COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tests/${name}_test.py)
endfunction()

strata_check(tidy)
strata_check(layers)
strata_check(docs)
strata_check(isa_symbols ${PROJECT_BINARY_DIR})
set_tests_properties(isa_symbols PROPERTIES COST 20)
add_test(NAME fetch_model_test
         COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tests/fetch_model_test.py)
add_test(NAME results_table
         COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/results_table.py --check)
add_test(NAME results_table_test
         COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tests/results_table_test.py)
add_test(NAME clang_format COMMAND ${PROJECT_SOURCE_DIR}/tools/clang_checks.sh format)

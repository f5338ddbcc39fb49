# The cases of tests/conformance, which every language runs.
foreach(name cases torch networks toolkit training errors)
  list(APPEND QTN_CASES ${PROJECT_SOURCE_DIR}/tests/conformance/${name}.json)
endforeach()

# A test that runs `command ROOT CASES...`. What it says stays in a file, for the table of docs/languages.md.
function(add_conformance_test language)
  add_test(NAME ${language}.conformance
           COMMAND ${PROJECT_SOURCE_DIR}/tests/conformance/told.sh ${PROJECT_BINARY_DIR}/conformance/${language}.txt ${ARGN}
                   ${PROJECT_SOURCE_DIR} ${QTN_CASES})
  set_tests_properties(${language}.conformance PROPERTIES LABELS ${language} TIMEOUT 300 FIXTURES_SETUP languages)
endfunction()

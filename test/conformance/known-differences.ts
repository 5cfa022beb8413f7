/**
 * llama.cpp's tests that contradict a rule of the gateway's own: they pass directly and fail through the gateway, with the reason. A test that passes
 * through the gateway again fails the run, until its entry is removed.
 */
const CONTEXT_TYPE =
  'wants the type `exceed_context_size_error`; the gateway answers `context_length_exceeded` with the type of OpenAI, whatever the engine'
const SERVER_FAILURE = 'wants the status 500 of llama-server; a failure of a model server is 502 at a gateway, so that each side is known'

export const KNOWN_DIFFERENCES: Readonly<Record<string, string>> = {
  'unit/test_chat_completion.py::test_context_size_exceeded': CONTEXT_TYPE,
  'unit/test_chat_completion.py::test_context_size_exceeded_stream': CONTEXT_TYPE,
  'unit/test_chat_completion.py::test_chat_completions_multiple_choices':
    'chooses a slot of the server by `id_slot`; the gateway refuses fields by which one caller disturbs other callers',
  'unit/test_compat_anthropic.py::test_anthropic_tool_result_with_image': SERVER_FAILURE,
  'unit/test_compat_anthropic.py::test_anthropic_vision_format_accepted': SERVER_FAILURE,
  'unit/test_compat_anthropic.py::test_anthropic_empty_messages':
    'wants an answer to `messages: []`; the gateway refuses such a request, as the Anthropic API does',
}

/**
 * llama.cpp's tests that contradict a rule of the gateway's own: they pass directly and fail through the gateway, with the reason. A test that passes
 * through the gateway again fails the run, until its entry is removed.
 */
const CONTEXT_TYPE =
  'wants the type `exceed_context_size_error`; the gateway answers `context_length_exceeded` with the type of OpenAI, whatever the engine'
const NO_PROJECTOR =
  'wants the status 500 with which llama-server refuses an image; the gateway answers 400, since no other try would succeed'

export const KNOWN_DIFFERENCES: Readonly<Record<string, string>> = {
  'unit/test_chat_completion.py::test_context_size_exceeded': CONTEXT_TYPE,
  'unit/test_chat_completion.py::test_context_size_exceeded_stream': CONTEXT_TYPE,
  'unit/test_chat_completion.py::test_chat_completions_multiple_choices':
    'chooses a slot of the server by `id_slot`; the gateway refuses fields by which one caller disturbs other callers',
  'unit/test_compat_anthropic.py::test_anthropic_tool_result_with_image': NO_PROJECTOR,
  'unit/test_compat_anthropic.py::test_anthropic_vision_format_accepted': NO_PROJECTOR,
  'unit/test_compat_anthropic.py::test_anthropic_empty_messages':
    'wants an answer to `messages: []`; the gateway refuses such a request, as the Anthropic API does',
}

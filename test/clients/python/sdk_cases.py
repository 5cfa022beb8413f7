"""Uses of the Python SDKs and frameworks by applications.

Runs each case once and prints one line of JSON for each: its name, and facts that have to be the same directly and through the gateway (no ids, no
model name, no sampled text), or the error. The environment says where: OPENAI_URL (with /v1), ANTHROPIC_URL, EMBEDDINGS_URL (with /v1), API_KEY,
MODEL, TRANSLATED_MODEL (the same server, which the gateway translates for), CALLER_URL and CALLER_MODEL (a server that makes the calls of tools that a
request demands; translated, too), CONVERSATIONS (a file with requests, and the number of calls in each answer), EMBEDDINGS_MODEL.
"""
import asyncio
import contextlib
import io
import json
import os
import pathlib
import re
import tempfile

import anthropic
import openai
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI, OpenAI as LangChainOpenAI, OpenAIEmbeddings
from llama_index.core.llms import ChatMessage
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILike

OPENAI_URL = os.environ["OPENAI_URL"]
ANTHROPIC_URL = os.environ["ANTHROPIC_URL"]
EMBEDDINGS_URL = os.environ["EMBEDDINGS_URL"]
KEY = os.environ["API_KEY"]
MODEL = os.environ["MODEL"]
TRANSLATED_MODEL = os.environ["TRANSLATED_MODEL"]
CALLER_URL = os.environ["CALLER_URL"]
CALLER_MODEL = os.environ["CALLER_MODEL"]
CONVERSATIONS = json.loads(pathlib.Path(os.environ["CONVERSATIONS"]).read_text())
EMBEDDINGS_MODEL = os.environ["EMBEDDINGS_MODEL"]

MAX_TOKENS = 24  # the model is random, so every answer ends here
MAX_RETRIES = 2  # the default of the SDKs: on a busy machine a gateway refuses calls with 503 and 529, and says when to ask again
QUESTION = "Say something about canals."
TEXTS = [QUESTION, "Why?", "Grachtengürtel 🚤"]
TURNS = [
    {"role": "user", "content": QUESTION},
    {"role": "assistant", "content": "They are wet."},
    {"role": "user", "content": "More."},
]

oai = openai.OpenAI(api_key=KEY, base_url=OPENAI_URL, max_retries=MAX_RETRIES)
oai_async = openai.AsyncOpenAI(api_key=KEY, base_url=OPENAI_URL, max_retries=MAX_RETRIES)
oai_embeddings = openai.OpenAI(api_key=KEY, base_url=EMBEDDINGS_URL, max_retries=MAX_RETRIES)
ant = anthropic.Anthropic(auth_token=KEY, base_url=ANTHROPIC_URL, max_retries=MAX_RETRIES)
ant_caller = anthropic.Anthropic(auth_token=KEY, base_url=CALLER_URL, max_retries=MAX_RETRIES)
ant_async = anthropic.AsyncAnthropic(auth_token=KEY, base_url=ANTHROPIC_URL, max_retries=MAX_RETRIES)

cases = {}


def case(name):
    def add(run):
        cases[name] = run
        return run

    return add


def ended(reason):
    """A random model may stop before the limit, so both count as the end of a good answer."""
    return "ended" if reason in ("length", "stop", "max_tokens", "end_turn") else str(reason)


def rounded(vector):
    return [round(value, 4) for value in vector]


def chat_facts(answer):
    choice = answer.choices[0]
    return [answer.object, choice.message.role, bool(choice.message.content), ended(choice.finish_reason), answer.usage.prompt_tokens]


@case("openai, chat, plain")
def _():
    return chat_facts(oai.chat.completions.create(model=MODEL, max_tokens=MAX_TOKENS, messages=TURNS))


@case("openai, chat, streamed with usage")
def _():
    options = {"include_usage": True}
    chunks = list(oai.chat.completions.create(model=MODEL, max_tokens=MAX_TOKENS, messages=TURNS, stream=True, stream_options=options))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    return [bool(text), len(chunks) > 1, chunks[-1].usage.prompt_tokens]


@case("openai, chat, async")
async def _():
    return chat_facts(await oai_async.chat.completions.create(model=MODEL, max_tokens=MAX_TOKENS, messages=TURNS))


@case("openai, chat, a mistake in the request")
def _():
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "no-type"}}}
    try:
        oai.chat.completions.create(model=MODEL, max_tokens=MAX_TOKENS, messages=TURNS, response_format=schema)
    except openai.BadRequestError as error:
        return error.status_code


@case("openai, completions, plain")
def _():
    answer = oai.completions.create(model=MODEL, max_tokens=MAX_TOKENS, prompt=QUESTION)
    return [answer.object, bool(answer.choices[0].text), ended(answer.choices[0].finish_reason), answer.usage.prompt_tokens]


@case("openai, completions, streamed")
def _():
    chunks = list(oai.completions.create(model=MODEL, max_tokens=MAX_TOKENS, prompt=QUESTION, stream=True))
    return [bool("".join(chunk.choices[0].text for chunk in chunks if chunk.choices)), len(chunks) > 1]


@case("openai, responses, plain")
def _():
    answer = oai.responses.create(model=MODEL, max_output_tokens=MAX_TOKENS, input=QUESTION)
    return [answer.object, answer.status, bool(answer.output_text), answer.usage.input_tokens]


@case("openai, responses, streamed")
def _():
    events = list(oai.responses.create(model=MODEL, max_output_tokens=MAX_TOKENS, input=QUESTION, stream=True))
    kinds = list(dict.fromkeys(event.type for event in events))
    return [kinds, len(events) > 1, events[-1].response.usage.input_tokens]


@case("openai, embeddings, one text")
def _():
    answer = oai_embeddings.embeddings.create(model=EMBEDDINGS_MODEL, input=QUESTION)
    return [answer.object, rounded(answer.data[0].embedding), answer.usage.prompt_tokens]


@case("openai, embeddings, several texts")
def _():
    answer = oai_embeddings.embeddings.create(model=EMBEDDINGS_MODEL, input=TEXTS)
    return [[one.index, rounded(one.embedding)] for one in answer.data]


@case("openai, the list of models")
def _():
    return MODEL in [one.id for one in oai.models.list()]


def message_facts(answer):
    text = "".join(block.text for block in answer.content if block.type == "text")
    return [answer.type, answer.role, bool(text), ended(answer.stop_reason), answer.usage.output_tokens > 0]


def rebuilt(message):
    """What the SDK has rebuilt, without ids and names. Servers count cached tokens in different ways, so the parts of the prompt are added up."""
    blocks = []
    for block in message.content:
        if block.type == "tool_use":
            blocks.append([block.type, block.name, block.input])
        else:
            blocks.append([block.type, getattr(block, "text", None)])
    usage = message.usage
    prompt = usage.input_tokens + (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    return [blocks, message.stop_reason, prompt, usage.output_tokens]


def conversations(ask):
    """Asks each twice: the second time the server has the prompt in its cache, so a model at temperature 0 writes the same words both ways."""
    facts = []
    for conversation in CONVERSATIONS:
        request, calls = conversation["request"], conversation["calls"]
        client, model = (ant_caller, CALLER_MODEL) if calls > 0 else (ant, TRANSLATED_MODEL)
        fields = {name: value for name, value in request.items() if name != "temperature"}
        both = [ask(client, model=model, extra_body={"temperature": request["temperature"]}, **fields) for _ in range(2)]
        made = sum(block.type == "tool_use" for block in both[1].content)
        if made != calls:
            raise AssertionError(f"{made} calls of tools instead of {calls}: {both[1].content}")
        facts.append(rebuilt(both[1]))
    return facts


@case("anthropic, 48 conversations, plain, translated")
def _():
    return conversations(lambda client, **fields: client.messages.create(**fields))


@case("anthropic, 48 conversations, streamed, translated")
def _():
    def ask(client, **fields):
        with client.messages.stream(**fields) as stream:
            return stream.get_final_message()

    return conversations(ask)


@case("anthropic, plain")
def _():
    return message_facts(ant.messages.create(model=MODEL, max_tokens=MAX_TOKENS, system="Be brief.", messages=TURNS))


@case("anthropic, the stream helper")
def _():
    with ant.messages.stream(model=MODEL, max_tokens=MAX_TOKENS, messages=TURNS) as stream:
        pieces = list(stream.text_stream)
        return [len(pieces) > 1, message_facts(stream.get_final_message())]


@case("anthropic, async")
async def _():
    return message_facts(await ant_async.messages.create(model=MODEL, max_tokens=MAX_TOKENS, messages=TURNS))


@case("anthropic, the tokens of a prompt")
def _():
    return ant.messages.count_tokens(model=MODEL, system="Be brief.", messages=TURNS).input_tokens


def chain(**more):
    return ChatOpenAI(model=MODEL, api_key=KEY, base_url=OPENAI_URL, max_tokens=MAX_TOKENS, max_retries=MAX_RETRIES, **more)


def chain_facts(answer):
    text = answer.text if isinstance(answer.text, str) else answer.text()
    return [bool(text), (answer.usage_metadata or {}).get("input_tokens", 0) > 0]


chat_models = {
    "ChatOpenAI": lambda: chain(),
    "ChatOpenAI on responses": lambda: chain(use_responses_api=True),
    "ChatAnthropic": lambda: ChatAnthropic(model=MODEL, api_key=KEY, base_url=ANTHROPIC_URL, max_tokens=MAX_TOKENS, max_retries=MAX_RETRIES),
}


def add_chat_cases(name, build):
    @case(f"LangChain, {name}, invoke")
    def _():
        return chain_facts(build().invoke(QUESTION))

    @case(f"LangChain, {name}, stream")
    def _():
        chunks = list(build().stream(QUESTION))
        whole = chunks[0]
        for chunk in chunks[1:]:
            whole += chunk
        return [len(chunks) > 1, chain_facts(whole)[0]]

    @case(f"LangChain, {name}, batch")
    def _():
        return [chain_facts(answer) for answer in build().batch([QUESTION, QUESTION, QUESTION])]

    @case(f"LangChain, {name}, async")
    async def _():
        return chain_facts(await build().ainvoke(QUESTION))


for one, build_one in chat_models.items():
    add_chat_cases(one, build_one)


@case("LangChain, ChatAnthropic, the tokens of a prompt")
def _():
    return chat_models["ChatAnthropic"]().get_num_tokens_from_messages([HumanMessage(QUESTION)])


@case("LangChain, OpenAI, a completion")
def _():
    return bool(LangChainOpenAI(model=MODEL, api_key=KEY, base_url=OPENAI_URL, max_tokens=MAX_TOKENS, max_retries=MAX_RETRIES).invoke(QUESTION))


def chain_embeddings():
    # the server has its own tokens, so the texts go as texts
    return OpenAIEmbeddings(
        model=EMBEDDINGS_MODEL, api_key=KEY, base_url=EMBEDDINGS_URL, max_retries=MAX_RETRIES, check_embedding_ctx_length=False
    )


@case("LangChain, OpenAIEmbeddings, a query")
def _():
    return rounded(chain_embeddings().embed_query(QUESTION))


@case("LangChain, OpenAIEmbeddings, documents")
def _():
    return [rounded(vector) for vector in chain_embeddings().embed_documents(TEXTS)]


def llama_index(is_chat):
    return OpenAILike(
        model=MODEL, api_key=KEY, api_base=OPENAI_URL, max_tokens=MAX_TOKENS, max_retries=MAX_RETRIES, context_window=4096, is_chat_model=is_chat
    )


@case("LlamaIndex, OpenAILike, complete without a chat model (its default)")
def _():
    return bool(llama_index(False).complete(QUESTION).text)


@case("LlamaIndex, OpenAILike, stream_complete without a chat model")
def _():
    return len(list(llama_index(False).stream_complete(QUESTION))) > 1


@case("LlamaIndex, OpenAILike, chat")
def _():
    return bool(llama_index(True).chat([ChatMessage(role="user", content=QUESTION)]).message.content)


@case("LlamaIndex, OpenAILike, stream_chat")
def _():
    return len(list(llama_index(True).stream_chat([ChatMessage(role="user", content=QUESTION)]))) > 1


@case("LlamaIndex, OpenAILike, async")
async def _():
    return bool((await llama_index(True).acomplete(QUESTION)).text)


@case("LlamaIndex, OpenAILikeEmbedding")
def _():
    embedding = OpenAILikeEmbedding(model_name=EMBEDDINGS_MODEL, api_key=KEY, api_base=EMBEDDINGS_URL, max_retries=MAX_RETRIES)
    return [rounded(vector) for vector in embedding.get_text_embedding_batch(TEXTS)]


ROOT = pathlib.Path(__file__).resolve().parents[3]
SECRET_FILE = ".headgate/secrets/demo/first-key/SERVICE_API_KEY"


def printed_by_document(page):
    """Runs the Python block of a document as a reader pastes it; only URL and model are those of this run."""
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    program = block.replace("http://127.0.0.1:8080/v1", OPENAI_URL).replace('"llama"', repr(MODEL))
    os.environ.update(OPENAI_API_KEY=KEY, OPENAI_BASE_URL=OPENAI_URL)
    printed = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        file = pathlib.Path(SECRET_FILE)
        file.parent.mkdir(parents=True)
        file.write_text(KEY)
        exec(program, {})
    return printed.getvalue().strip() != ""


for page in ('README.md', 'docs/clients.md'):
    case(f"{page}, the lines of Python")(lambda page=page: printed_by_document(page))


LONGEST_ERROR = 300


async def main():
    for name, run in cases.items():
        try:
            facts = run()
            if asyncio.iscoroutine(facts):
                facts = await facts
            line = {"case": name, "facts": facts}
        except Exception as error:  # each error of an SDK is a verdict
            line = {"case": name, "error": f"{type(error).__name__}: {error}".replace(KEY, "<key>")[:LONGEST_ERROR]}
        print(json.dumps(line), flush=True)


asyncio.run(main())

// LangGraph JS: a desk asks a shipper through a tool. OpenInference makes the spans.
//
//     npm install @langchain/langgraph @langchain/core @langchain/openai zod
//     npm install @arizeai/openinference-instrumentation-langchain
//     npm install @opentelemetry/sdk-trace-node @opentelemetry/exporter-trace-otlp-proto
//     OPENAI_API_KEY=... node langgraph_js_parcel.mjs

import { LangChainInstrumentation } from '@arizeai/openinference-instrumentation-langchain';
import * as callbacks from '@langchain/core/callbacks/manager';
import { tool } from '@langchain/core/tools';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { z } from 'zod';

const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] });
provider.register();
new LangChainInstrumentation({ tracerProvider: provider }).manuallyInstrument(callbacks);

const llm = new ChatOpenAI({
  model: process.env.OPENAI_MODEL ?? 'gpt-5-mini',
  configuration: { baseURL: process.env.OPENAI_BASE_URL },
});
const tariff = { Lisbon: 8.3, Porto: 8.1 };

const postage = tool(
  async ({ city, kilograms }) => {
    if (!(city in tariff)) throw new Error(`no tariff for '${city}'`);
    return `${(tariff[city] * kilograms).toFixed(2)} EUR`;
  },
  {
    name: 'postage',
    description: 'Look up what a parcel costs.',
    schema: z.object({ city: z.string(), kilograms: z.number() }),
  },
);
const find_order = tool(async ({ order }) => `${order}: 3 kg, to Lisbon`, {
  name: 'find_order',
  description: 'Look an order up.',
  schema: z.object({ order: z.string() }),
});

const shipper = createReactAgent({
  name: 'shipper',
  llm,
  tools: [postage],
  prompt: 'You are the shipper. Look the price up and say it in one sentence.',
});
const ask_shipper = tool(
  async ({ question }, config) => {
    const { messages } = await shipper.invoke({ messages: [["user", question]] }, config);
    return messages.at(-1).content;
  },
  {
    name: 'ask_shipper',
    description: 'Ask the shipper, who knows the tariff.',
    schema: z.object({ question: z.string() }),
  },
);
const desk = createReactAgent({
  name: 'desk',
  llm,
  tools: [find_order, ask_shipper],
  prompt: 'You are the desk. Look the order up, then let the shipper name the price.',
});
const { messages } = await desk.invoke({ messages: [['user', 'What does it cost to send order A-17?']] });
console.log(messages.at(-1).content);
await provider.shutdown();

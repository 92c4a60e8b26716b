"""Sessions of coding assistants, of chats with people, and of agents in a browser."""

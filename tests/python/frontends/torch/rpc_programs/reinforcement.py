"""An agent that learns from observers' episodes by calls in both directions, in the shape of PyTorch's example."""

import os

import torch
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp
from torch import nn, optim
from torch.distributed.rpc import RRef, remote, rpc_async, rpc_sync
from torch.nn import functional

OBSERVERS, STEPS = 2, 6


def _call_method(method, rref, *args, **kwargs):
    return method(rref.local_value(), *args, **kwargs)


def _remote_method(method, rref, *args, **kwargs):
    return rpc_sync(rref.owner(), _call_method, args=[method, rref, *args], kwargs=kwargs)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1, self.affine2 = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x):
        return functional.softmax(self.affine2(functional.relu(self.affine1(x))), dim=1)


class World:
    """An environment whose state moves by a fixed rule."""

    def __init__(self, number):
        self.number = number

    def reset(self):
        self.state = torch.linspace(-1, 1, 4) * (self.number + 1)
        return self.state

    def step(self, action):
        self.state = torch.roll(self.state, 1) * 0.9 + (action - 0.5) * 0.1
        return self.state, float(1 - self.state.abs().mean())


class Observer:
    def __init__(self):
        self.id = rpc.get_worker_info().id
        self.env = World(self.id)

    def run_episode(self, agent_rref, n_steps):
        state = self.env.reset()
        for _ in range(n_steps):
            action = _remote_method(Agent.select_action, agent_rref, self.id, state)
            state, reward = self.env.step(action)
            _remote_method(Agent.report_reward, agent_rref, self.id, reward)


class Agent:
    def __init__(self, world_size):
        torch.manual_seed(11)
        self.ob_rrefs = [remote(f"observer{r}", Observer) for r in range(1, world_size)]
        self.agent_rref = RRef(self)
        self.rewards = {r: [] for r in range(1, world_size)}
        self.saved_log_probs = {r: [] for r in range(1, world_size)}
        self.policy = Policy()
        self.optimizer = optim.Adam(self.policy.parameters(), lr=1e-2)

    def select_action(self, ob_id, state):
        probs = self.policy(state.float().unsqueeze(0))
        action = probs.argmax(1)
        self.saved_log_probs[ob_id].append(probs[0, action].log())
        return action.item()

    def report_reward(self, ob_id, reward):
        self.rewards[ob_id].append(reward)

    def run_episode(self, n_steps):
        futs = [
            rpc_async(ob.owner(), _call_method, args=(Observer.run_episode, ob, self.agent_rref, n_steps))
            for ob in self.ob_rrefs
        ]
        for fut in futs:
            fut.wait()

    def finish_episode(self):
        probs, rewards = [], []
        for ob_id in self.rewards:
            probs.extend(self.saved_log_probs[ob_id])
            rewards.extend(self.rewards[ob_id])
        loss = torch.cat([-p * r for p, r in zip(probs, rewards, strict=True)]).sum()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        for ob_id in self.rewards:
            self.rewards[ob_id], self.saved_log_probs[ob_id] = [], []
        return loss.item(), sum(rewards)


def run_worker(rank, world_size):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", os.environ["PROGRAM_PORT"]
    rpc.init_rpc("agent" if rank == 0 else f"observer{rank}", rank=rank, world_size=world_size)
    if rank == 0:
        agent = Agent(world_size)
        for episode in range(3):
            agent.run_episode(STEPS)
            loss, reward = agent.finish_episode()
            print(f"episode {episode}: loss {loss:.5f}, reward {reward:.5f}")
    rpc.shutdown()


if __name__ == "__main__":
    mp.spawn(run_worker, args=(OBSERVERS + 1,), nprocs=OBSERVERS + 1, join=True)

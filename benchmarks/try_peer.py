import sys, time, numpy as np, statistics as st
import problems as P, peers
key=sys.argv[1]; n=int(sys.argv[2]); which=sys.argv[3:] 
M=peers.load(key); print(M.name, M.available())
mk={"RSUR":P.rsur,"Stewart 6-distance":P.stewart_distance,"Stewart UPS":P.stewart_ups,"planar 4R":P.planar_4r,"chain 1000, bad":lambda:P.chain(1000),"chain 1000, uniform":lambda:P.chain(1000), "chain 100, bad":lambda:P.chain(100)}
for pr in which or M.problems:
    model=mk[pr](); kind="bad" if "bad" in pr else "uniform"
    t=[];ok=0;res=[]; t0=time.time()
    for s in range(n):
        try:
            a=M.assemble(model, model.start(s,kind)); r=model.residual(a.poses); t.append(a.seconds)
        except Exception as e: r=float('inf'); print(repr(e)[:300])
        ok+=r<=1e-6; res.append(r)
        if time.time()-t0>60: break
    print(f"{pr:20s} {ok}/{len(res)} median {1e3*np.median(t or [0]):.2f} ms, good res {sorted(res)[:1]} med {np.median(res):.1e} wall {time.time()-t0:.1f}", flush=True)

PRAGMA user_version = 7;
BEGIN TRANSACTION;
CREATE TABLE answers (
        key INTEGER PRIMARY KEY,
        uid INTEGER NOT NULL,
        request TEXT NOT NULL,
        whole BLOB NOT NULL,
        time_us INTEGER NOT NULL
    );
CREATE TABLE changes (key INTEGER PRIMARY KEY, type INTEGER NOT NULL, subject TEXT NOT NULL);
INSERT INTO "changes" VALUES(68719476737,1,'a');
INSERT INTO "changes" VALUES(68719476738,1,'b');
INSERT INTO "changes" VALUES(68719476739,1,'p');
INSERT INTO "changes" VALUES(68719476740,1,'gone');
INSERT INTO "changes" VALUES(68719476741,1,'c0');
INSERT INTO "changes" VALUES(68719476742,1,'c1');
INSERT INTO "changes" VALUES(68719476743,1,'c2');
INSERT INTO "changes" VALUES(68719476744,1,'c3');
INSERT INTO "changes" VALUES(68719476745,1,'c4');
INSERT INTO "changes" VALUES(68719476746,1,'c5');
INSERT INTO "changes" VALUES(68719476747,1,'c6');
INSERT INTO "changes" VALUES(68719476748,1,'c7');
INSERT INTO "changes" VALUES(68719476749,1,'c8');
INSERT INTO "changes" VALUES(68719476750,1,'k0');
INSERT INTO "changes" VALUES(68719476751,1,'k1');
INSERT INTO "changes" VALUES(68719476752,1,'k2');
INSERT INTO "changes" VALUES(68719476753,1,'k3');
INSERT INTO "changes" VALUES(68719476754,1,'k4');
INSERT INTO "changes" VALUES(68719476755,1,'k5');
INSERT INTO "changes" VALUES(68719476756,1,'k6');
INSERT INTO "changes" VALUES(68719476757,1,'late');
INSERT INTO "changes" VALUES(68719476758,2,'b');
INSERT INTO "changes" VALUES(68719476759,3,'gone');
INSERT INTO "changes" VALUES(68719476760,6,'st');
INSERT INTO "changes" VALUES(68719476761,6,'st');
INSERT INTO "changes" VALUES(68719476762,6,'other');
INSERT INTO "changes" VALUES(68719476763,6,'dead');
INSERT INTO "changes" VALUES(68719476764,7,'dead');
INSERT INTO "changes" VALUES(68719476765,1,'child');
INSERT INTO "changes" VALUES(68719476766,1,'only');
INSERT INTO "changes" VALUES(68719476767,1,'message');
INSERT INTO "changes" VALUES(68719476768,1,'answer');
INSERT INTO "changes" VALUES(68719476769,6,'late state');
INSERT INTO "changes" VALUES(137438953473,1,'a');
CREATE TABLE item_history (
        key INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        replaced_us INTEGER NOT NULL,
        session_id TEXT NOT NULL,
        create_us INTEGER NOT NULL,
        update_us INTEGER NOT NULL,
        expire_us INTEGER,
        labels TEXT,
        metadata TEXT,
        content TEXT NOT NULL,
        facet TEXT,
        importance REAL,
        provenance TEXT,
        terms BLOB NOT NULL,
        vector_revision INTEGER NOT NULL,
        embedding BLOB
    );
INSERT INTO "item_history" VALUES(68719476738,2,1700000000000005,'s',1700000000000000,1700000000000000,NULL,NULL,'{"m":[1,null]}','{"type":"text","text":"another kiwi"}',NULL,NULL,NULL,X'FB84F710B349DE505525AD08190470AAB995E13801000100010001000100',2,X'00000000000000000000803F00000000');
CREATE TABLE items (
    key INTEGER PRIMARY KEY,
    uid INTEGER NOT NULL,
    id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    create_us INTEGER NOT NULL,
    update_us INTEGER NOT NULL,
    expire_us INTEGER,
    labels TEXT,
    metadata TEXT,
    content TEXT NOT NULL,
    terms BLOB NOT NULL,
    vector_revision INTEGER NOT NULL,
    embedding BLOB,
    facet TEXT
, importance REAL, use_count INTEGER NOT NULL DEFAULT 0, provenance TEXT);
INSERT INTO "items" VALUES(68719476737,1,'a',1,'s',1700000000000000,1700000000000000,NULL,'{"k":"v"}',NULL,'{"type":"text","text":"a kiwi went by"}',X'B349DE50A54284D75525AD08190470AAB995E13801000100010001000100',1,X'000000000000803F0000000000000000',NULL,NULL,2,'{"writer":"ada","credential_id":"key-ada","source":4,"source_uri":"https://example.org/kiwi","trust":0.5}');
INSERT INTO "items" VALUES(68719476738,1,'b',22,'',1700000000000000,1700000000000005,NULL,NULL,'{"m":2}','{"type":"text","text":"another kiwi, replaced"}',X'FB84F710B349DE506629BE705525AD08190470AAB995E138010001000100010001000100',22,X'0000000000000000000000000000803F',NULL,NULL,1,'{"writer":"mallory","credential_id":"key-mallory"}');
INSERT INTO "items" VALUES(68719476739,1,'p',3,'',1700000000000000,1700000000000000,NULL,NULL,NULL,'{"type":"text","text":"a kiwi that waits for its vector"}',X'B349DE50D639939E4547A6715525AD08190470AAB995E138010001000100010001000100',-1,NULL,NULL,NULL,0,NULL);
INSERT INTO "items" VALUES(68719476741,1,'c0',5,'',1700000000000000,1700000000000000,NULL,NULL,NULL,'{"type":"text","text":"plain\ntext with é, 漢 and 😀"}',X'B349DE50896A80A15525AD08190470AAB995E13801000100010001000100',0,NULL,NULL,NULL,0,NULL);
INSERT INTO "items" VALUES(68719476742,1,'c1',6,'',1700000000000000,1700000000000000,NULL,NULL,NULL,'{"type":"text","text":""}',X'B349DE50896A80A15525AD08190470AAB995E13801000100010001000100',0,NULL,NULL,NULL,0,NULL);
INSERT INTO "items" VALUES(68719476743,1,'c2',7,'',1700000000000000,1700000000000000,NULL,NULL,NULL,'{"type":"data","data":{"deep":[1.5,null,true,{"k":"é"}],"":{},"big":1e300}}',X'B349DE50896A80A15525AD08190470AAB995E13801000100010001000100',0,NULL,NULL,NULL,0,NULL);
INSERT INTO "items" VALUES(68719476744,1,'c3',8,'',1700000000000000,1700000000000000,NULL,NULL,NULL,'{"type":"data","data":{}}',X'B349DE50896A80A15525AD08190470AAB995E13801000100010001000100',0,NULL,NULL,NULL,0,NULL);
INSERT INTO "items" VALUES(68719476745,1,'c4',9,'',1700000000000000,1700000000000000,NULL,NULL,NULL,'{"type":"tool_call_result","tool_call_id":"call-1","name":"search"}',X'B349DE50896A80A15525AD08190470AAB995E13801000100010001000100',0,NULL,NULL,NULL,0,NULL);
INSERT INTO "items" VALUES(68719476746,1,'c5',10,'',1700000000000000,1700000000000000,NULL,NULL,NULL,'{"type":"tool_call_result","tool_call_id":"call-1","name":"search","result":null}',X'B349DE50896A80A15525AD08190470AAB995E13801000100010001000100',0,NULL,NULL,NULL,0,NULL);
INSERT INTO "items" VALUES(68719476747,1,'c6',11,'',1700000000000000,1700000000000000,NULL,NULL,NULL,'{"type":"tool_call_result","tool_call_id":"call-1","name":"search","result":["no",{"x":0.0}],"is_error":true}',X'B349DE50896A80A15525AD08190470AAB995E13801000100010001000100',0,NULL,NULL,NULL,0,NULL);
INSERT INTO "items" VALUES(68719476748,1,'c7',12,'',1700000000000000,1700000000000000,NULL,NULL,NULL,'{"type":"chat_message","role":"assistant","parts":[{"type":"text","text":"look"},{"type":"data","data":{"a":1.0}},{"type":"binary","mime_type":"image/png","content":"AP8AcG5n","name":"p.png","content_length":6},{"type":"binary","mime_type":"image/png","url":"https://example.com/p.png","content_length":-1},{"type":"tool_call","tool_call_id":"call-1","name":"search","arguments":{"q":"x"}},{"type":"tool_call","tool_call_id":"call-2","name":"empty","arguments":{}},{"type":"tool_call","tool_call_id":"call-3","name":"none"},{"type":"tool_call_result","tool_call_id":"call-1","name":"search","result":{"hits":[]}}],"message_id":"m-1","name":"Ada","model":["openai","gpt-5"],"create_us":1699999999999995}',X'B349DE50896A80A15525AD08190470AAB995E13801000100010001000100',0,NULL,NULL,NULL,0,NULL);
INSERT INTO "items" VALUES(68719476749,1,'c8',13,'',1700000000000000,1700000000000000,NULL,NULL,NULL,'{"type":"chat_message","role":"tool"}',X'B349DE50896A80A15525AD08190470AAB995E13801000100010001000100',0,NULL,NULL,NULL,0,NULL);
INSERT INTO "items" VALUES(68719476750,1,'k0',14,'',1700000000000000,1700000000000000,NULL,NULL,NULL,'{"type":"text","text":"kiwi kind 0"}',X'B349DE5025F64EB4B24C45485525AD08190470AAB995E138010001000100010001000100',14,X'0000803F000000000000000000000000',NULL,0.25,0,NULL);
INSERT INTO "items" VALUES(68719476751,1,'k1',15,'',1700000000000000,1700000000000000,NULL,NULL,NULL,'{"type":"text","text":"kiwi kind 1"}',X'B349DE5025F64EB4B2C8ECB65525AD08190470AAB995E138010001000100010001000100',15,X'000000000000803F0000000000000000','{"kind":1,"tags":{"document_id":"book"},"attributes":{"n":1}}',0.25,0,NULL);
INSERT INTO "items" VALUES(68719476752,1,'k2',16,'',1700000000000000,1700000000000000,NULL,NULL,NULL,'{"type":"text","text":"kiwi kind 2"}',X'B349DE5025F64EB43463430C5525AD08190470AAB995E138010001000100010001000100',16,X'00000000000000000000803F00000000','{"kind":2,"tags":{"document_id":"book"},"attributes":{"n":1}}',0.25,0,NULL);
INSERT INTO "items" VALUES(68719476753,1,'k3',17,'',1700000000000000,1700000000000000,NULL,NULL,NULL,'{"type":"text","text":"kiwi kind 3"}',X'B349DE5025F64EB4C473EC9C5525AD08190470AAB995E138010001000100010001000100',17,X'0000000000000000000000000000803F','{"kind":3,"tags":{"document_id":"book"},"attributes":{"n":1}}',0.25,0,NULL);
INSERT INTO "items" VALUES(68719476754,1,'k4',18,'',1700000000000000,1700000000000000,NULL,NULL,NULL,'{"type":"text","text":"kiwi kind 4"}',X'B349DE5025F64EB436AFD96D010001000100',18,X'0000803F000000000000000000000000','{"kind":4,"tags":{"document_id":"book"},"attributes":{"n":1}}',0.25,0,NULL);
INSERT INTO "items" VALUES(68719476755,1,'k5',19,'',1700000000000000,1700000000000000,NULL,NULL,NULL,'{"type":"text","text":"kiwi kind 5"}',X'B349DE5025F64EB4F351571C010001000100',19,X'000000000000803F0000000000000000','{"kind":5,"tags":{"document_id":"book"},"attributes":{"n":1}}',0.25,0,NULL);
INSERT INTO "items" VALUES(68719476756,1,'k6',20,'',1700000000000000,1700000000000000,NULL,NULL,NULL,'{"type":"text","text":"kiwi kind 6"}',X'B349DE5025F64EB46FE6E706010001000100',20,X'00000000000000000000803F00000000','{"kind":6,"tags":{"document_id":"book"},"attributes":{"n":1}}',0.25,0,NULL);
INSERT INTO "items" VALUES(68719476757,1,'late',21,'',1700000000000000,1700000000000000,2700000000000000,NULL,NULL,'{"type":"text","text":"kiwi"}',X'B349DE505525AD08190470AAB995E1380100010001000100',0,NULL,NULL,NULL,0,NULL);
INSERT INTO "items" VALUES(68719476765,1,'child',29,'',1700000000000000,1700000000000000,NULL,NULL,NULL,'{"type":"text","text":"made of a kiwi"}',X'6DB9F4AEB349DE505525AD08190470AAB995E13801000100010001000100',29,X'00000000000000000000803F00000000',NULL,NULL,0,'{"writer":"ada","credential_id":"key-ada","parent_ids":["a","nowhere","b"]}');
INSERT INTO "items" VALUES(68719476766,1,'only',30,'',1700000000000000,1700000000000000,NULL,NULL,NULL,'{"type":"text","text":"made of one kiwi"}',X'6DB9F4AE6052BF7EB349DE505525AD08190470AAB995E138010001000100010001000100',0,NULL,NULL,NULL,0,'{"writer":"ada","credential_id":"key-ada","parent_ids":["child"]}');
INSERT INTO "items" VALUES(68719476767,1,'message',31,'',1700000000000000,1700000000000000,NULL,NULL,NULL,'{"type":"text","text":"hello, kiwi"}',X'F97700FBB349DE505525AD08190470AAB995E13801000100010001000100',0,NULL,'{"kind":1,"tags":{"party":"ada"},"attributes":{"sender":"ada"}}',NULL,0,NULL);
INSERT INTO "items" VALUES(68719476768,1,'answer',32,'',1700000000000000,1700000000000000,NULL,NULL,NULL,'{"type":"text","text":"hello"}',X'F97700FB5525AD08190470AAB995E1380100010001000100',0,NULL,'{"kind":2,"tags":{"in_response_to":"message","party":"ada"},"attributes":{"sender":"system"}}',NULL,0,NULL);
INSERT INTO "items" VALUES(137438953473,2,'a',1,'',1700000000000000,1700000000000000,NULL,NULL,NULL,'{"type":"text","text":"kiwi of bob"}',X'B349DE50E7E0BB025525AD08190470AAB995E13801000100010001000100',0,NULL,NULL,NULL,0,NULL);
CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
INSERT INTO "meta" VALUES('erased:1',X'');
CREATE TABLE namespaces (
    uid INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    revision INTEGER NOT NULL,
    item_count INTEGER NOT NULL,
    state_count INTEGER NOT NULL,
    embedded_count INTEGER NOT NULL,
    dimension INTEGER NOT NULL,
    model TEXT NOT NULL,
    version_floor INTEGER NOT NULL,
    create_us INTEGER NOT NULL
, pending_count INTEGER NOT NULL DEFAULT 0, vector_epoch INTEGER NOT NULL DEFAULT 0, moving INTEGER NOT NULL DEFAULT 0);
INSERT INTO "namespaces" VALUES(1,'people/ada',33,24,3,10,4,'local:a',1,1700000000000000,1,0,0);
INSERT INTO "namespaces" VALUES(2,'people/bob',1,1,0,0,0,'',0,1700000000000000,0,0,0);
CREATE TABLE quarantine (
        uid INTEGER NOT NULL,
        id TEXT NOT NULL,
        reason TEXT NOT NULL,
        body BLOB NOT NULL,
        held_us INTEGER NOT NULL,
        expire_us INTEGER NOT NULL,
        writer TEXT NOT NULL,
        credential_id TEXT NOT NULL,
        request_id TEXT,
        digest BLOB
    );
INSERT INTO "quarantine" VALUES(1,'held-1','looks odd',X'7B226974656D73223A5B7B226964223A2271222C22636F6E74656E74223A7B2274797065223A2274657874222C2274657874223A2268656C64206B697769227D2C226372656174655F7573223A313730303030303030303030303030307D5D7D',1700000000000000,2700000000000000,'mallory','key-mallory','r-held',X'646967657374');
INSERT INTO "quarantine" VALUES(1,'held-2','odd',X'7B226974656D73223A5B5D7D',1700000000000000,2700000000000000,'','',NULL,NULL);
CREATE TABLE removals (
        key INTEGER PRIMARY KEY,
        time_us INTEGER NOT NULL,
        writer TEXT NOT NULL,
        credential_id TEXT NOT NULL
    );
INSERT INTO "removals" VALUES(68719476759,1700000000000000,'','');
INSERT INTO "removals" VALUES(68719476764,1700000000000000,'','');
CREATE TABLE requests (
    uid INTEGER NOT NULL,
    id TEXT NOT NULL,
    digest BLOB NOT NULL,
    receipt TEXT NOT NULL,
    time_us INTEGER NOT NULL,
    PRIMARY KEY (uid, id)
) WITHOUT ROWID;
INSERT INTO "requests" VALUES(1,'r-delete',X'626F6479','[23,[],1,0,0,0,0,null,"",0,0,false,0,0]',1700000000000000);
INSERT INTO "requests" VALUES(1,'r-items',X'626F6479','[4,[["a",1,1,1700000000000000,1700000000000000,null],["b",2,2,1700000000000000,1700000000000000,null],["p",3,3,1700000000000000,1700000000000000,null],["gone",4,4,1700000000000000,1700000000000000,null]],0,0,0,0,0,null,"",0,0,false,0,0]',1700000000000000);
INSERT INTO "requests" VALUES(1,'r-replace',X'626F6479','[22,[["b",22,2,1700000000000000,1700000000000005,null]],0,0,0,0,0,null,"",0,0,false,0,0]',1700000000000000);
INSERT INTO "requests" VALUES(1,'r-state',X'626F6479','[24,[],0,0,1,1700000000000000,1700000000000000,null,"",0,0,false,0,0]',1700000000000000);
INSERT INTO "requests" VALUES(2,'r-bob',X'626F6479','[1,[["a",1,1,1700000000000000,1700000000000000,null]],0,0,0,0,0,null,"",0,0,false,0,0]',1700000000000000);
CREATE TABLE snapshots (uid INTEGER PRIMARY KEY, manifest TEXT NOT NULL);
CREATE TABLE state_history (
        uid INTEGER NOT NULL,
        key TEXT NOT NULL,
        version INTEGER NOT NULL,
        replaced_us INTEGER NOT NULL,
        create_us INTEGER NOT NULL,
        update_us INTEGER NOT NULL,
        expire_us INTEGER,
        description TEXT NOT NULL,
        value TEXT NOT NULL,
        provenance TEXT,
        PRIMARY KEY (uid, key, version)
    );
INSERT INTO "state_history" VALUES(1,'st',1,1700000000000005,1700000000000000,1700000000000000,NULL,'first','{"v":1}',NULL);
CREATE TABLE states (
        uid INTEGER NOT NULL,
        key TEXT NOT NULL,
        version INTEGER NOT NULL,
        create_us INTEGER NOT NULL,
        update_us INTEGER NOT NULL,
        expire_us INTEGER,
        description TEXT NOT NULL,
        revision INTEGER NOT NULL,
        value TEXT NOT NULL,
        provenance TEXT,
        PRIMARY KEY (uid, key)
    );
INSERT INTO "states" VALUES(1,'other',1,1700000000000000,1700000000000000,NULL,'',26,'[1.5,null]',NULL);
INSERT INTO "states" VALUES(1,'st',2,1700000000000000,1700000000000005,NULL,'second',25,'{"v":2}','{"writer":"mallory","credential_id":"key-mallory"}');
INSERT INTO "states" VALUES(1,'late state',2,1700000000000007,1700000000000007,NULL,'',33,'{"v":[1]}',NULL);
CREATE TABLE told_of (
        uid INTEGER NOT NULL,
        subject TEXT NOT NULL,
        answer INTEGER NOT NULL,
        PRIMARY KEY (uid, subject, answer)
    ) WITHOUT ROWID;
CREATE UNIQUE INDEX items_by_id ON items (uid, id);
CREATE INDEX items_expiring ON items (expire_us) WHERE expire_us IS NOT NULL;
CREATE INDEX requests_by_time ON requests (time_us);
CREATE INDEX namespaces_pending ON namespaces (name) WHERE pending_count > 0;
CREATE INDEX items_pending ON items (key) WHERE vector_revision < 0;
CREATE UNIQUE INDEX item_history_by_version ON item_history (key, revision);
CREATE INDEX item_history_by_age ON item_history (replaced_us);
CREATE INDEX removals_by_age ON removals (time_us);
CREATE UNIQUE INDEX quarantine_by_id ON quarantine (uid, id);
CREATE INDEX quarantine_by_request ON quarantine (uid, request_id) WHERE request_id IS NOT NULL;
CREATE INDEX quarantine_expiring ON quarantine (expire_us);
CREATE INDEX items_used ON items (key, use_count) WHERE use_count > 0;
CREATE UNIQUE INDEX answers_by_request ON answers (uid, request);
CREATE INDEX answers_by_time ON answers (time_us);
CREATE INDEX told_of_by_answer ON told_of (answer);
CREATE TRIGGER answer_forgotten AFTER DELETE ON answers BEGIN DELETE FROM told_of WHERE answer = old.key; END;
CREATE INDEX states_expiring ON states (expire_us) WHERE expire_us IS NOT NULL;
CREATE INDEX state_history_by_age ON state_history (replaced_us);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('namespaces',2);
COMMIT;

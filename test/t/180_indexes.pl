# Unique and secondary indexes of the source are built on the target when a table streams: what each kind becomes, that the
# stream goes on meanwhile, and that a build which is killed, cancelled or fails ends well and leaves nothing invalid behind.

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use IO::Handle;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $mysql = $source->is_mysql;

sub pipeline
{
	my ($schema, %option) = @_;
	return CdcBridge::Pipeline->new(source => $source, postgres => $postgres, schema => $schema, name => $schema, server => "server_$schema", %option)->setup;
}

sub index_status
{
	my ($schema, $index, $column) = @_;
	return $postgres->psql("select $column from pg_stat_cdc_index where pipeline = '$schema' and source_table || '.' || source_index = '$index'");
}

# Wait until no index of the pipeline is to be built.
sub wait_for_indexes
{
	my ($schema) = @_;
	return 1 if $postgres->poll("select count(*) from pg_stat_cdc_index where pipeline = '$schema' and state in ('wanted', 'building')", '0');
	diag($postgres->psql("select * from pg_stat_cdc_index where pipeline = '$schema'"), $postgres->log_tail(30));
	return 0;
}

sub count_invalid { return $postgres->psql('select count(*) from pg_index where not indisvalid'); }

# A session whose transaction a concurrent build has to wait for; SQL is what it does first.
sub hold
{
	my ($sql) = @_;
	open(my $session, '|-', $postgres->bindir . '/psql', '-qXAt', '-o', '/dev/null', '-h', $postgres->host, '-p', $postgres->port, '-U', 'postgres', '-d', 'postgres') or die "psql: $!";
	$session->autoflush(1);
	print $session "begin isolation level repeatable read;\n$sql;\n";
	my $held = "select count(*) from pg_stat_activity where state = 'idle in transaction' and query = '$sql;'";
	$postgres->poll($held, '1') or die "no session holds a transaction open\n";
	return $session;
}

# Wait until a build waits for such a session.
sub wait_for_waiting_build
{
	return $postgres->poll(q{select count(*) from pg_stat_progress_create_index p join pg_locks l on l.pid = p.pid and not l.granted}, '1');
}

# ---- what each kind becomes

my $unseen = $mysql ? 'invisible' : 'ignored';
my $long = 'a_table_whose_name_is_as_long_as_sixty_bytes_and_then_some_mo';
$source->sql(
	'create database kinds', 'use kinds',
	q{create table t (id int primary key, a int, b varchar(20), c varchar(255), d date, e enum('x','y'), l enum('','y'), t text, tt tinytext, v varchar(2000), g geometry not null, n decimal(30,5), bin varbinary(300)}
	  . ($mysql ? '' : ', h varchar(3000), unique u_hash (h)')
	  . q{, unique u_b (b), unique u_two (b, e), unique u_prefix (c(5)), unique u_label (l, id), unique u_d (d, id), key k_a (a), key k_desc (a desc, b), key k_prefix (c(10)), key k_tiny (tt(20)), key k_text (t(20)),}
	  . " key k_long (v(100)), key k_three (b, c, e), key k_bytes (bin), key k_n (n, d), key `odd \"name'` (e), fulltext k_full (t), spatial k_geo (g), key k_unseen (b, d) $unseen"
	  . ($mysql ? ', key k_fn ((a + 1)), unique u_fn ((a + 2), id)' : '')
	  . ') charset utf8mb4 collate utf8mb4_general_ci',
	'create table a (id int primary key, v int, key b_c (v))',
	'create table a_b (id int primary key, w int, key c (w))',
	"create table $long (id int primary key, v int, w int, key one_index (v), key two_index (w))",
	'create table nokey (x int not null, y int, unique u (x), key k (y, x))',
);
my $empty = q{st_geomfromtext('POINT(1 2)')};
$source->sql("insert into t (id, a, b, c, d, e, l, t, tt, v, g, n, bin) values (1, 1, 'A', 'cc', '2026-01-02', 'x', 'y', 't', 'tt', 'v', $empty, 1.5, 'b'), (2, null, null, null, null, null, null, null, null, null, $empty, null, null)");
my $kinds = pipeline('kinds', options => '{"zero_date": "epoch"}')->start;
$kinds->wait_for_state('streaming')->wait_for_tables;
ok(wait_for_indexes('kinds'), 'all indexes come to an end');
my %built = (
	't.u_b' => 'CREATE UNIQUE INDEX t_u_b ON kinds.t USING btree (b)',
	't.u_two' => 'CREATE UNIQUE INDEX t_u_two ON kinds.t USING btree (b, e)',
	't.k_a' => 'CREATE INDEX t_k_a ON kinds.t USING btree (a)',
	't.k_desc' => 'CREATE INDEX t_k_desc ON kinds.t USING btree (a DESC, b)',
	't.k_prefix' => 'CREATE INDEX t_k_prefix ON kinds.t USING btree (c)',
	't.k_tiny' => 'CREATE INDEX t_k_tiny ON kinds.t USING btree (tt)',
	't.k_three' => 'CREATE INDEX t_k_three ON kinds.t USING btree (b, c, e)',
	't.k_bytes' => 'CREATE INDEX t_k_bytes ON kinds.t USING btree (bin)',
	't.k_n' => 'CREATE INDEX t_k_n ON kinds.t USING btree (n, d)',
	q{t.odd "name'} => q{CREATE INDEX "t_odd ""name'" ON kinds.t USING btree (e)},
	'a.b_c' => 'CREATE INDEX a_b_c ON kinds.a USING btree (v)',
	'a_b.c' => qr/^CREATE INDEX a_b_c_[0-9a-f]{8} ON kinds\.a_b USING btree \(w\)$/,
	"$long.one_index" => qr/^CREATE INDEX \w{54}_[0-9a-f]{8} ON kinds\.$long USING btree \(v\)$/,
	"$long.two_index" => qr/^CREATE INDEX \w{54}_[0-9a-f]{8} ON kinds\.$long USING btree \(w\)$/,
	'nokey.u' => 'CREATE UNIQUE INDEX nokey_pkey ON kinds.nokey USING btree (x)',
	'nokey.k' => 'CREATE INDEX nokey_k ON kinds.nokey USING btree (y, x)',
);
my %left_out = (
	't.u_prefix' => qr/unique over the first 5 characters of column "c"/,
	't.u_label' => qr/column "l" has an empty label/,
	't.u_d' => qr/option "zero_date" can make two values of column "d" one/,
	't.k_text' => qr/values of column "t" can be longer/,
	't.k_long' => qr/values of its columns can have 8000 bytes together/,
	't.k_full' => qr/full-text index/,
	't.k_geo' => qr/spatial index, and PostGIS is not in this database/,
	't.k_unseen' => qr/invisible or ignored/,
	$mysql ? ('t.k_fn' => qr/over an expression/, 't.u_fn' => qr/over an expression/) : ('t.u_hash' => qr/longer than an index of PostgreSQL takes/),
);
my %rows = map { my @row = split(/\t/, $_, -1); $row[0] => \@row } split(/\n/, $postgres->psql(
	q{select concat_ws(E'\t', source_table || '.' || source_index, state, is_unique, coalesce(reason, ''), coalesce(pg_get_indexdef(to_regclass(format('%I.%I', target_schema, coalesce(target_index, '-')))), ''), coalesce(statement, '-')) from pg_stat_cdc_index where pipeline = 'kinds'}));
is(join(', ', sort keys %rows), join(', ', sort(keys %built, keys %left_out)), 'every index of the source is listed');
for my $name (sort keys %built)
{
	my $row = $rows{$name} // [ '', '', '', '', '', '' ];
	is($row->[1], 'built', "$name is built") or diag("@$row");
	is($row->[2], $name =~ /\.u/ ? 't' : 'f', "$name: unique or not");
	ref $built{$name} ? like($row->[4], $built{$name}, "$name: definition") : is($row->[4], $built{$name}, "$name: definition");
}
for my $name (sort keys %left_out)
{
	my $row = $rows{$name} // [ '', '', '', '', '', '' ];
	is($row->[1], 'left_out', "$name is left out") or diag("@$row");
	like($row->[3], $left_out{$name}, "$name: and says why");
	is($row->[5], '-', "$name: without a statement");
}
is($postgres->psql(q{select count(*) from pg_index where indrelid = 'kinds.t'::regclass}), 1 + grep({ /^t\./ } keys %built), 'no other index was made');
is($postgres->psql(q{select i->'parts' || jsonb_build_object('unique', i->'unique', 'visible', i->'visible', 'type', i->'type') from cdc_bridge.table_state join cdc_bridge.pipeline_table using (pipeline_id, table_id), jsonb_array_elements(definition->'indexes') i
	where source_table = 't' and i->>'name' in ('u_prefix', 'k_desc', 'k_full', 'k_unseen') order by i->>'name' collate "C"}), join("\n",
	'[{"column": "a", "descending": true}, {"column": "b"}, {"type": "BTREE", "unique": null, "visible": true}]',
	'[{"column": "t"}, {"type": "FULLTEXT", "unique": null, "visible": true}]',
	'[{"column": "b"}, {"column": "d"}, {"type": "BTREE", "unique": null, "visible": null}]',
	'[{"column": "c", "prefix": 5}, {"type": "BTREE", "unique": true, "visible": true}]'), 'the stored definition says all of the indexes');
$source->sql("insert into t (id, b, e, g) values (3, 'B', 'y', $empty), (4, null, 'x', $empty)", 'update t set b = null where id = 1', "update t set b = 'A' where id = 3");
$kinds->wait_for_catchup;
is($postgres->psql(q{select string_agg(id || '=' || coalesce(b, '-'), ' ' order by id) from kinds.t}), '1=- 2=- 3=A 4=-', 'the stream writes on with unique indexes');
is($kinds->table_status('t', 'state'), 'streaming', 'and does not stop') or diag($kinds->describe);
is($postgres->psql(q{select count(*) from pg_stat_cdc_index where pipeline = 'kinds' and state = 'built' and (started_at > finished_at or (finished_at is null and source_table <> 'nokey'))}), '0', 'times are noted');
$kinds->drop;
is($postgres->psql('select count(*) from cdc_bridge.target_index'), '0', 'a dropped pipeline leaves no rows');
is($postgres->psql(q{select count(*) from pg_index where indrelid = 'kinds.t'::regclass}), 1 + grep({ /^t\./ } keys %built), 'its indexes stay');

# ---- option none; tables that somebody else made

$source->sql('create database own', 'use own', 'create table made (id int primary key, a int, b int, unique u (a), key k (b))', 'create table theirs (id int primary key, a int, b int, c int, unique u (a), key k (b), key k2 (c))');
$postgres->psql('create schema own; create table own.theirs (id int primary key, a int, b int, c int); create unique index their_u on own.theirs (a); create index their_k on own.theirs (b) where b > 0; create index their_c on own.theirs (c desc)');
my $own = pipeline('own', options => '{"secondary_indexes": "none"}')->start;
$own->wait_for_state('streaming')->wait_for_tables;
ok(wait_for_indexes('own'), 'own: nothing is to be built');
is(index_status('own', 'made.u', 'state || reason'), 'left_outoption "secondary_indexes" is "none"', 'option none: left out');
is(index_status('own', 'made.u', 'statement'), 'CREATE UNIQUE INDEX CONCURRENTLY made_u ON own.made (a)', 'option none: the statement is shown');
is(index_status('own', 'theirs.u', q{state || ' ' || target_index}), 'built their_u', q{a user's index counts});
is(index_status('own', 'theirs.k2', q{state || ' ' || target_index}), 'built their_c', q{a user's index counts from either end});
is(index_status('own', 'theirs.k', 'state || reason'), 'left_outthe target table was there before the pipeline, and is left as it is', q{a user's partial index does not, and none is made on his table});
$own->drop;

# ---- the stream goes on while a build waits; a killed one is built anew; a violation stops nothing

$source->sql('create database shop', 'use shop', 'create table a (id int primary key, u int, v varchar(40), w int, unique u (u), key v (v))',
	'create table b (id int primary key, u int, w int, unique u (u), key w (w))', 'create table c (id int primary key, u int, w int, unique u (u), key w (w))');
$source->sql('insert into a values (1, 1, repeat("x", 20), 0)', 'insert into b values (1, 1, 1), (2, 2, 2)', 'insert into c values (1, 1, 1)');
$source->sql(map { my $n = 1 << $_; "insert into a select id + $n, u + $n, concat(left(v, 20), id), 0 from a" } 0 .. 16);
my $writing = sub {
	my ($dbh, $number) = @_;
	my $id = 1_000_000 * $number + int(rand(2000));
	my $row = int(rand(131072));
	$dbh->do("replace into shop.a values ($id, $id, 'w', 1)");
	$dbh->do("update shop.a set v = concat(left(v, 10), $id), w = w + 1 where id = $row");
	$dbh->do("delete from shop.a where id = $id") if rand() < 0.3;
};
my $shop = pipeline('shop');
$shop->{options} = '{"snapshot_workers": 1}';    # so that the builder meets the tables in their order
$source->start_writers(3, $writing);    # before the session: they would inherit its pipe
my $holder = hold('select 1');
$shop->start->wait_for_state('streaming')->wait_for_tables;
ok(wait_for_waiting_build(), 'a build waits for an old transaction');
is($postgres->psql(q{select count(*) from pg_stat_cdc_index where pipeline = 'shop' and state = 'building'}), '1', 'the view says so');
is(count_invalid(), '1', 'it is not valid yet');
is($shop->state, 'streaming', 'the pipeline streams all the same');
my $changes = $shop->status('changes');
ok($postgres->poll("select changes > $changes + 500 from pg_stat_cdc_pipeline where pipeline = 'shop'", 't'), 'and applies changes while the build waits');

$postgres->psql(q{select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'cdc_bridge snapshot worker'});
ok($postgres->poll(q{select count(*) from pg_stat_cdc_index where pipeline = 'shop' and state = 'building' and started_at is not null}, '1'), 'a terminated worker leaves it building');
ok(wait_for_waiting_build(), 'and another one waits');

$postgres->kill9;
close($holder);
is($postgres->start && count_invalid() ne '', 1, 'the server is killed in the middle');
ok(poll_until(sub { index_status('shop', 'a.v', 'state') eq 'built' }), 'both indexes of the table are built in the end') or diag($postgres->log_tail(30));
is(index_status('shop', 'a.u', 'state'), 'built', 'the one that was interrupted too');
is(index_status('shop', 'a.u', 'target_index'), 'a_u', 'under its name');
ok(wait_for_indexes('shop'), 'and all others');
is(count_invalid(), '0', 'no invalid index is left');
$source->stop_writers;
$shop->wait_for_state('streaming')->wait_for_catchup;
$shop->is_same('rows are equal after builds under writers');
is($postgres->psql(q{select string_agg(indexrelid::regclass::text, ' ' order by indexrelid::regclass::text) from pg_index where indrelid = 'shop.a'::regclass}) =~ s/shop\.//gr =~ s/^ | $//gr, 'a_pkey a_u a_v', 'the indexes are there once');
$shop->stop->drop->drop_target;

$holder = hold('select 1');
$shop->start->wait_for_state('streaming')->wait_for_tables;
ok(wait_for_waiting_build(), 'once more a build waits');
$postgres->psql(q{insert into shop.b values (1000, 2, 0); create index somebodys on shop.c (w); create table shop.c_u (x int)});
close($holder);
ok(wait_for_indexes('shop'), 'the others are built');
is(index_status('shop', 'b.u', 'state'), 'failed', 'an index that rows of somebody else violate fails');
is(index_status('shop', 'b.u', 'last_error_sqlstate'), '23505', 'with its SQLSTATE');
like(index_status('shop', 'b.u', 'last_error_detail'), qr/somebody else wrote to the table/, 'the detail says why');
unlike(index_status('shop', 'b.u', 'last_error || last_error_detail'), qr/=\(2\)|\(u\)/, 'and shows no value');
like(index_status('shop', 'b.u', 'last_error_hint'), qr/Remove the rows/, 'the hint says what to do');
is(index_status('shop', 'b.w', 'state'), 'built', 'other indexes of that table are built');
is(index_status('shop', 'c.w', q{state || ' ' || target_index}), 'built somebodys', q{an index that a user made meanwhile counts});
like(index_status('shop', 'c.u', q{state || ' ' || target_index}), qr/^built c_u_[0-9a-f]{8}$/, 'a name that is taken is not used');
is(count_invalid(), '0', 'the failed one left no invalid index');
$source->sql('insert into shop.b values (3, 3, 3)', 'update shop.b set u = 22 where id = 2', 'update shop.b set u = 2 where id = 2');
$shop->wait_for_catchup;
is($shop->table_status('b', 'state'), 'streaming', 'the table streams on');
is($postgres->psql(q{select string_agg(id || '=' || u, ' ' order by id) from shop.b}), '1=1 2=2 3=3 1000=2', 'with all rows');
$postgres->psql('delete from shop.b where id = 1000');
$shop->stop->start->wait_for_state('streaming');
ok(poll_until(sub { index_status('shop', 'b.u', 'state') eq 'built' }), 'after a new start it is built');
is(index_status('shop', 'b.u', 'last_error is null'), 't', 'and the error is gone');

# ---- what somebody does to them afterwards
$postgres->psql('drop index shop.b_w; create schema elsewhere; alter table shop.c set schema elsewhere; alter table elsewhere.c rename to see');
is(index_status('shop', 'b.w', 'state'), 'dropped', 'an index that somebody dropped is not called built');
is(index_status('shop', 'c.w', q{state || ' ' || target_schema || '.' || target_table}), 'built elsewhere.see', 'one of a target that was moved is');
is($shop->table_status('c', q{target_schema || '.' || target_table}), 'elsewhere.see', 'and the view of tables shows where that is');
$source->sql('insert into shop.c values (2, 2, 2)');
$shop->wait_for_catchup;
is($postgres->psql('select count(*) from elsewhere.see'), '2', 'where rows go');
$postgres->psql('alter table elsewhere.see rename to c; alter table elsewhere.c set schema shop');

# ---- cancelled by somebody: not tried again by itself
$shop->drop->drop_target;
$holder = hold('select 1');
$shop->start->wait_for_state('streaming')->wait_for_tables;
ok(wait_for_waiting_build(), 'a build waits');
$postgres->psql(q{select pg_cancel_backend(pid) from pg_stat_progress_create_index});
ok($postgres->poll(q{select state || last_error_sqlstate from pg_stat_cdc_index where pipeline = 'shop' and source_table = 'a' and source_index = 'u'}, 'failed57014'), 'a cancelled build has failed');
close($holder);
ok(wait_for_indexes('shop'), 'the others are built');
is(index_status('shop', 'a.u', 'state'), 'failed', 'the cancelled one is not tried again by itself');
is(count_invalid(), '0', 'and left nothing');

# ---- a pipeline is dropped while it builds
$shop->drop->drop_target;
$holder = hold('select 1');
$shop->start->wait_for_state('streaming')->wait_for_tables;
ok(wait_for_waiting_build(), 'a build waits');
$shop->drop;
is(count_invalid(), '0', 'a drop removes the unfinished index');
is($postgres->psql(q{select count(*) from pg_class where relname = 'a_u'}), '0', 'altogether');
close($holder);

$shop->drop_target;
$holder = hold('select 1');
$shop->start->wait_for_state('streaming')->wait_for_tables;
ok(wait_for_waiting_build(), 'a build waits');
my $reader = hold('select count(*) from shop.a');
$shop->drop;
like($postgres->{messages}, qr/WARNING: .*unfinished index "a_u" is left on table "a".*DROP INDEX CONCURRENTLY shop\.a_u/s, 'a drop does not wait for readers, and says what is left');
is(count_invalid(), '1', 'which is so');
close($_) for $reader, $holder;
$postgres->psql('drop index concurrently shop.a_u');

# ---- another role owns the target
$source->sql('create database roles', 'create table roles.t (id int primary key, a int, key k (a))', 'create table roles.x (id int primary key, a int, key k (a))');
$postgres->psql(q{create role mirror login; create role owner_role; create role stranger; grant owner_role to mirror; create schema roles; grant create, usage on schema roles to mirror, owner_role});
my $roles = pipeline('roles');
$postgres->psql(sprintf(q{grant usage on foreign server server_roles to mirror; create user mapping for mirror server server_roles options (username %s, password %s); grant execute on all functions in schema public to mirror},
	map { "'$_'" } $source->user, $source->password));
$holder = hold('select 1');
$postgres->psql($roles->start_statement, user => 'mirror');
$roles->wait_for_state('streaming')->wait_for_tables;
ok(wait_for_waiting_build(), 'a build waits');
close($holder);
ok(wait_for_indexes('roles'), 'roles: built as the pipeline owner');
$postgres->psql(q{select cdc_stop_pipeline('roles')});
$roles->wait_for_state('stopped');
$postgres->psql(q{drop index roles.t_k, roles.x_k; update cdc_bridge.target_index set state = 'wanted', target_index = null; alter table roles.t owner to owner_role; alter table roles.x owner to stranger; grant all on roles.x to mirror});
$postgres->psql(q{select cdc_start_pipeline('roles')});
ok($postgres->poll(q{select count(*) from pg_stat_cdc_index where pipeline = 'roles' and state in ('wanted', 'building')}, '0'), 'roles: come to an end');
is(index_status('roles', 't.k', 'state'), 'built', 'the index of a table of another role is built');
is($postgres->psql(q{select relowner::regrole from pg_class where relname = 't_k'}), 'owner_role', 'and is his');
is(index_status('roles', 'x.k', q{state || last_error_sqlstate}), 'failed42501', 'where the owner of the pipeline may not become the owner of the table it fails');
like(index_status('roles', 'x.k', 'last_error_hint'), qr/GRANT stranger TO mirror/, 'and says what to do');

is(scalar(grep { $_ == 11 || $_ == 6 } $postgres->log_text =~ /terminated by signal (\d+)/g), 0, 'no process crashed');

done_testing();
